//! Records which of two compared sets contain a report.

/// The sets of a comparison that contain a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Presence {
    /// Both sets contain the report, or the set is not a diff.
    #[default]
    Both,
    /// Only the first set contains the report.
    FirstOnly,
    /// Only the second set contains the report.
    SecondOnly,
}
