//! What in the names of a program's reports changes from run to run: ids, addresses, counters.
//!
//! Patterns are only carried along: with a collection, and with the file it is saved to. Who compares two
//! reports replaces what they match, so that equal things have equal names.

use core::fmt;

/// A part of names that means nothing when two reports are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct NamePattern {
    /// A regular expression in the syntax of the crate `regex`; every match is replaced.
    pub pattern: String,
    /// What takes its place; `$1` is what the first group matched.
    pub replacement: String,
}

impl NamePattern {
    /// Replaces every match of `pattern` by `replacement`.
    pub fn new(pattern: impl Into<String>, replacement: impl Into<String>) -> Self {
        Self { pattern: pattern.into(), replacement: replacement.into() }
    }
}

/// What [`normalize_names!`](crate::normalize_names) submits.
pub struct StaticNamePattern {
    pattern: &'static str,
    replacement: &'static str,
}

impl StaticNamePattern {
    #[doc(hidden)]
    pub const fn new(pattern: &'static str, replacement: &'static str) -> Self {
        Self { pattern, replacement }
    }
}

impl fmt::Debug for StaticNamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StaticNamePattern").field(&self.pattern).field(&self.replacement).finish()
    }
}

inventory::collect!(StaticNamePattern);

/// The patterns of the whole program, in order of their text, since linking has none.
pub(crate) fn linked() -> Vec<NamePattern> {
    let mut patterns: Vec<_> = inventory::iter::<StaticNamePattern>()
        .map(|linked| NamePattern::new(linked.pattern, linked.replacement))
        .collect();
    patterns.sort();
    patterns.dedup();
    patterns
}

/// Says which part of this program's names changes from run to run, so that a diff of two of its
/// reports knows equal things as equal.
///
/// Takes a regular expression (in the syntax of the crate `regex`) and what replaces each match, both
/// literals. Every collection carries it, and so does a file that is written of it. What Firefox
/// replaces need not be said: `pid=12`, `(tid=12)` and the like.
///
/// ```
/// memory_reporter::normalize_names!(r"session\(id=[0-9]+\)", "session(id=N)");
///
/// let reports = memory_reporter::collect_reports(&Default::default());
/// assert_eq!(reports.name_patterns()[0].replacement, "session(id=N)");
/// ```
#[macro_export]
macro_rules! normalize_names {
    ($pattern:literal, $replacement:literal $(,)?) => {
        $crate::__private::inventory::submit! {
            $crate::__private::StaticNamePattern::new($pattern, $replacement)
        }
    };
}
