//! Compares the peak of the program's resident memory with the peak of its recorded heap and DMD's tables.

use core::fmt;

use dmd_analyze::program::bytes;
use dmd_analyze::{Dump, DumpPeak};

/// Resident memory is unexplained if it exceeds this many times the heap. The pages of an ordinary heap also contain
/// slop and free blocks, and can take two or three times the requested bytes.
const TIMES: u64 = 4;
/// Unexplained memory must also exceed the heap by this much: the process of a small heap often has some 10 MiB of
/// code, libraries, stacks and tables of DMD.
const ABOVE: u64 = 32 << 20;
/// The resident bytes that each block explains. Two million blocks of one byte take 97 MB, 48 bytes each: the smallest
/// block of the C library has 32 bytes, and DMD has a table of blocks. The other 80 bytes are room for the growth of
/// DMD's table.
const PER_BLOCK: u64 = 128;
/// With sampling, blocks are not counted. This size is assumed: a heap of smaller blocks is rare.
const SMALL_BLOCK: u64 = 8;

/// The line that compares both peaks. Its `Display` is empty if the recorded heap explains the resident memory.
pub(super) struct ResidentComparison {
    resident: u64,
    heap: u64,
    /// The true peak of the heap may exceed the recorded peak by this many bytes.
    within: u64,
    blocks: u64,
    /// Bytes of DMD's tables.
    tables: u64,
}

impl ResidentComparison {
    /// `None` if the dump does not have both peaks.
    pub(super) fn new(dump: &Dump, is_sample: bool) -> Option<Self> {
        let (resident, heap): (u64, &DumpPeak) = dump.resident_peak().zip(dump.peak())?;
        let blocks = if is_sample { heap.bytes() / SMALL_BLOCK } else { heap.blocks() };
        let (heap, within, tables) = (heap.bytes(), heap.within(), dump.table_bytes());
        Some(Self { resident, heap, within, blocks, tables })
    }

    fn is_unexplained(&self) -> bool {
        let heap = self.heap.saturating_add(self.within);
        let overhead = self.blocks.saturating_mul(PER_BLOCK).max(self.tables);
        let resident = self.resident.saturating_sub(overhead);
        resident / TIMES > heap && resident.saturating_sub(heap) > ABOVE
    }
}

impl fmt::Display for ResidentComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_unexplained() {
            return Ok(());
        }
        write!(f, "At its peak the process had {} resident", bytes(self.resident.into()))?;
        match self.resident.checked_div(self.heap) {
            Some(times) => write!(f, ", {times} times the recorded heap")?,
            None => f.write_str(", and no recorded heap")?,
        }
        let tables = bytes(self.tables.into());
        writeln!(
            f,
            ". DMD's tables have {tables} of the difference; mapped files, code, stacks and allocators that DMD does \
             not see have the other bytes."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn only_memory_that_the_heap_does_not_explain_is_shown() {
        let check = |resident: u64, heap: u64, blocks: u64, expected: &str| {
            let text = ResidentComparison { resident, heap, within: 8192, blocks, tables: MIB }.to_string();
            let start = text.split(". DMD's tables have 1.00 MiB of the difference").next();
            assert_eq!(start, Some(expected), "{resident} {heap} {blocks}");
        };
        let line = |rest: &str| format!("At its peak the process had {rest}");
        check(93 * MIB, 130_000, 12, &line("93.00 MiB resident, 750 times the recorded heap"));
        check(3 << 30, MIB, 1, &line("3.00 GiB resident, 3072 times the recorded heap"));
        check(34 * MIB, 0, 0, &line("34.00 MiB resident, and no recorded heap"));
        check(32 * MIB, 1, 1, "");
        check(400 * MIB, 100 * MIB, 1, "");
        check(400 * MIB, 8 * MIB, 4 * MIB, "");
    }
}
