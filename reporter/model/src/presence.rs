//! In which of two compared sets a report was.

/// In which of two sets a report was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Presence {
    /// In both; or the set is not a diff.
    #[default]
    Both,
    /// Only in the first: the second set lacks it.
    FirstOnly,
    /// Only in the second: the first set lacks it.
    SecondOnly,
}
