//! Options for displaying trees.

use memory_report::Units;

use crate::number::{self, ByteUnits};

/// The order of the entries below an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntrySort {
    /// The largest amount first. In a diff, the largest change in the entry or below it first.
    #[default]
    Amount,
    /// By name.
    Name,
}

/// All options of a text except the filter.
#[derive(Clone, Debug)]
pub(crate) struct TextOptions {
    /// Whether to show bytes, and all entries, however small.
    pub(crate) verbose: bool,
    /// Whether to show the description of each report behind its name.
    pub(crate) descriptions: bool,
    /// Entries below this percentage of the root of their tree are tiny.
    pub(crate) threshold: f64,
    /// The maximum number of levels below the root. `None`: all levels.
    pub(crate) depth: Option<u32>,
    pub(crate) sort: EntrySort,
    /// The unit of bytes. `None`: MB, or B if verbose.
    pub(crate) bytes: Option<ByteUnits>,
    /// Show only processes whose name contains this text. `None`: all processes.
    pub(crate) process: Option<String>,
}

impl Default for TextOptions {
    fn default() -> Self {
        let (depth, sort, bytes, process) = (None, EntrySort::Amount, None, None);
        Self { verbose: false, descriptions: false, threshold: 1.0, depth, sort, bytes, process }
    }
}

impl TextOptions {
    pub(crate) fn push_amount(&self, to: &mut String, amount: i128, units: Units) {
        let bytes = if self.verbose { ByteUnits::B } else { ByteUnits::Mb };
        number::push_amount_in(to, amount, units, self.bytes.unwrap_or(bytes));
    }

    pub(crate) fn shows(&self, process: &str) -> bool {
        self.process.as_ref().is_none_or(|part| process.contains(part.as_str()))
    }

    /// Whether an entry is tiny compared with the root. The comparison uses floats, as in Firefox: a root of 0 gives
    /// NaN or infinity, so the result depends on the sign.
    pub(crate) fn is_tiny(&self, weight: i128, total: i128) -> bool {
        !self.verbose && 100.0 * weight as f64 / (total as f64) < self.threshold
    }
}
