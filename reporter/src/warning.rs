//! What went wrong beside the good reports; carried with every [`ReportSet`](crate::ReportSet).

use core::fmt;

/// What a [`Warning`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A report that breaks a rule was left out.
    ReportDropped,
    /// A report that breaks a rule is shown all the same.
    ReportKept,
    /// A reporter panicked; its reports were left out.
    Panicked,
    /// A reporter did not answer in time; its reports were left out.
    TimedOut,
    /// A reporter took long, but answered.
    Slow,
    /// A reporter collected reports from inside a collection.
    Nested,
    /// Something that was to be measured could not be looked at.
    Unavailable,
    /// A process that was asked did not answer; its reports are missing.
    ProcessMissing,
}

impl WarningKind {
    const ALL: [Self; 8] = [
        Self::ReportDropped,
        Self::ReportKept,
        Self::Panicked,
        Self::TimedOut,
        Self::Slow,
        Self::Nested,
        Self::Unavailable,
        Self::ProcessMissing,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::ReportDropped => "report-dropped",
            Self::ReportKept => "report-kept",
            Self::Panicked => "panicked",
            Self::TimedOut => "timed-out",
            Self::Slow => "slow",
            Self::Nested => "nested",
            Self::Unavailable => "unavailable",
            Self::ProcessMissing => "process-missing",
        }
    }

    /// The kind of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The name by which a file calls it, such as `timed-out`.
impl fmt::Display for WarningKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something that is wrong with one reporter or one report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// What sort of thing went wrong.
    pub kind: WarningKind,
    /// Who: a reporter's or a process's name, or a place in a file such as `reports[12].amount`.
    pub subject: String,
    /// What: lower case, no full stop.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.message)
    }
}
