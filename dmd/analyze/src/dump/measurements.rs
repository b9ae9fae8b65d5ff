//! A dump's measurements of DMD itself: the last section of the layout of 2013.

use core::fmt;

use crate::print::number;

/// The memory that DMD needed, and the size of the dump.
#[derive(Clone, Debug, Default)]
pub(crate) struct EngineMemory {
    /// The bytes of each of [`SIZES`]; only dumps of the crate `dmd` have them.
    sizes: [Option<u64>; SIZES.len()],
    /// Entries of `blockList`, `traceTable` and `frameTable`.
    pub(crate) counts: [usize; 3],
}

/// Keys in a dump, and their names in the text.
const SIZES: [(&str, &str); 8] = [
    ("stackTracesUsed", "Used stack traces"),
    ("stackTracesUnused", "Unused stack traces"),
    ("stackTraceTable", "Stack trace table"),
    ("liveBlockTable", "Block table"),
    ("deadBlockTable", "Dead block table"),
    ("reports", "Reports"),
    ("threads", "Threads"),
    ("unwindRules", "Unwind rules"),
];

impl EngineMemory {
    /// The field for the bytes with this key of a dump; `None` if the key is unknown.
    pub(crate) fn size(&mut self, key: &str) -> Option<&mut Option<u64>> {
        let at = SIZES.iter().position(|(known, _)| *known == key)?;
        Some(&mut self.sizes[at])
    }

    /// The bytes of all tables.
    pub(crate) fn bytes(&self) -> u64 {
        self.sizes.iter().flatten().copied().fold(0, u64::saturating_add)
    }

    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sizes.iter().any(Option::is_some) {
            f.write_str("Data structures that persist after the dump:\n")?;
            for ((_, name), bytes) in SIZES.iter().zip(self.sizes) {
                if let Some(bytes) = bytes {
                    writeln!(f, "  {:<21} {:>10} bytes", format!("{name}:"), number(bytes.into()))?;
                }
            }
            f.write_str("\n")?;
        }
        f.write_str("Counts:\n")?;
        for (name, count) in ["Block entries:", "Stack traces:", "Stack frames:"].iter().zip(self.counts) {
            writeln!(f, "  {name:<21} {:>10}", number(count as i128))?;
        }
        f.write_str("\n")
    }
}
