//! Patterns for the parts of report names that change from run to run: ids, addresses, counters.
//!
//! A set and its file contain the program's patterns. A tool that compares two sets replaces the matches, so that
//! equal things have equal names.

/// A pattern for a part of names that a comparison of two sets ignores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct NamePattern {
    /// A regular expression in the syntax of the crate `regex`; a comparison replaces every match.
    pub pattern: String,
    /// The text that replaces a match; `$1` means the match of the first group.
    pub replacement: String,
}

impl NamePattern {
    /// A pattern and the text that replaces every match.
    pub fn new(pattern: impl Into<String>, replacement: impl Into<String>) -> Self {
        Self { pattern: pattern.into(), replacement: replacement.into() }
    }
}
