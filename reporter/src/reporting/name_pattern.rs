//! The program's patterns for the parts of report names that change from run to run. Every collection contains them.

use core::fmt;

use memory_report::NamePattern;

use crate::small_sort::sort_by;

/// A pattern from [`normalize_names!`](crate::normalize_names).
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

/// The patterns of the whole program, sorted by text, since the order of linking is arbitrary.
pub(crate) fn linked() -> Vec<NamePattern> {
    let mut patterns: Vec<_> = inventory::iter::<StaticNamePattern>()
        .map(|linked| NamePattern::new(linked.pattern, linked.replacement))
        .collect();
    sort_by(&mut patterns, Ord::cmp);
    patterns.dedup();
    patterns
}

/// Declares a pattern for a part of this program's report names that changes from run to run. In a diff of two runs,
/// equal things then have equal names.
///
/// The arguments are two literals: a regular expression (in the syntax of the crate `regex`), and the replacement of
/// each match. Every collection and its file contain the pattern. Without any pattern, a diff replaces `pid=12`,
/// `(tid=12)` and similar names, as Firefox does.
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
