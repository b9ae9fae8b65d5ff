//! The faults of reports, reporters and processes. Every [`ReportSet`](crate::ReportSet) contains its warnings.

use core::fmt;

/// The sort of fault that a [`Warning`] describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// A report breaks a rule and was left out.
    ReportDropped,
    /// A report breaks a rule and was kept.
    ReportKept,
    /// A reporter panicked; its reports were left out.
    Panicked,
    /// A reporter did not answer in time; its reports were left out.
    TimedOut,
    /// A reporter took long, but answered.
    Slow,
    /// A reporter tried to start a collection.
    Nested,
    /// A value could not be measured.
    Unavailable,
    /// A process did not answer a request; its reports are missing.
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

    /// The kind with this name; `None` for an unknown name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Writes the name that the file format uses, such as `timed-out`.
impl fmt::Display for WarningKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A fault of one report, one reporter or one process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Warning {
    /// The sort of fault.
    pub kind: WarningKind,
    /// The name of the reporter or process, the path of the report, or a place in a file such as `reports[12].amount`.
    pub subject: String,
    /// The description of the fault, in lower case and without a full stop.
    pub message: String,
}

impl Warning {
    /// A warning about `subject`.
    pub fn new(kind: WarningKind, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, subject: subject.into(), message: message.into() }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.message)
    }
}
