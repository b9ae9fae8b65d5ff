//! The parts of report names that change from run to run: ids, addresses, counters.
//!
//! A set carries its patterns, and so does the file it is saved to. A tool that compares two sets replaces the
//! matches, so that equal things have equal names.

/// A part of names that a comparison of two sets ignores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct NamePattern {
    /// A regular expression in the syntax of the crate `regex`; a comparison replaces every match.
    pub pattern: String,
    /// The text that replaces a match; `$1` stands for the match of the first group.
    pub replacement: String,
}

impl NamePattern {
    /// Replaces every match of `pattern` by `replacement`.
    pub fn new(pattern: impl Into<String>, replacement: impl Into<String>) -> Self {
        Self { pattern: pattern.into(), replacement: replacement.into() }
    }
}
