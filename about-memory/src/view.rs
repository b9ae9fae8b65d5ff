//! What of the trees is shown, and how.

use memory_report::Units;

use crate::number::{self, ByteUnits};

/// The order of what is below one entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sort {
    /// The largest first; in a diff, what changed most in it or below it.
    #[default]
    Amount,
    /// By name.
    Name,
}

/// Everything that can be said about a text but the filter.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Bytes, and everything however small.
    pub(crate) verbose: bool,
    /// What is less than this many percent of its tree's root is tiny.
    pub(crate) threshold: f64,
    /// How many levels below the root are shown.
    pub(crate) depth: Option<u32>,
    pub(crate) sort: Sort,
    /// `None`: MB, or B if verbose.
    pub(crate) bytes: Option<ByteUnits>,
    /// Only processes whose name contains this are shown.
    pub(crate) process: Option<String>,
}

impl Default for View {
    fn default() -> Self {
        let (depth, sort, bytes, process) = (None, Sort::Amount, None, None);
        Self { verbose: false, threshold: 1.0, depth, sort, bytes, process }
    }
}

impl View {
    pub(crate) fn push_amount(&self, to: &mut String, amount: i128, units: Units) {
        let bytes = if self.verbose { ByteUnits::B } else { ByteUnits::Mb };
        number::push_amount_in(to, amount, units, self.bytes.unwrap_or(bytes));
    }

    pub(crate) fn shows(&self, process: &str) -> bool {
        self.process.as_ref().is_none_or(|part| process.contains(part.as_str()))
    }

    /// Whether an entry is tiny beside the root. In floats, as in Firefox: a root of 0 gives no
    /// number or infinity, and what is then shown depends on the sign.
    pub(crate) fn is_tiny(&self, weight: i128, total: i128) -> bool {
        !self.verbose && 100.0 * weight as f64 / (total as f64) < self.threshold
    }
}
