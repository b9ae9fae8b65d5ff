//! Reported pointers that do not point to the start of a live block. Each such pointer is a fault of a reporter.

use core::fmt::{self, Display};

use crate::dump::{CallFrame, Dump, FaultyPointer, ReportFaultKind};
use crate::names::{FoldRules, FrameworkSources, Workspace};
use crate::print::{CleanText, number};

/// Faults with the same kind, path, reporter and place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportFault {
    /// The kind of the fault.
    pub kind: ReportFaultKind,
    /// The path of the reports; empty if the program reported the pointers without a path.
    pub path: String,
    /// The number of pointers.
    pub count: u64,
    /// The first pointer.
    pub address: u64,
    /// The function that reported the pointers: the innermost function outside of libraries and of `memory-reporter`.
    pub reporter: String,
    /// The source line of that function; empty if it is unknown.
    pub place: String,
    /// The frames of the first report, innermost first.
    pub stack: Vec<String>,
}

impl ReportFault {
    /// The path of the reports, or a description of reports without a path.
    pub fn subject(&self) -> &str {
        if self.path.is_empty() { "(no path)" } else { &self.path }
    }

    /// The fault in words, such as `2 pointers inside a block, not at its start (interior), by app::f (src/f.rs:7)`.
    pub fn message(&self) -> String {
        let Self { kind, count, .. } = self;
        let plural = if *count == 1 { "" } else { "s" };
        let mut text =
            format!("{} pointer{plural} {} ({})", number((*count).into()), kind.what(), kind.name());
        if !self.reporter.is_empty() {
            text.push_str(&format!(", by {}", self.reporter));
        }
        if !self.place.is_empty() {
            text.push_str(&format!(" ({})", self.place));
        }
        text
    }
}

/// Writes the path and the [`message`](ReportFault::message).
impl Display for ReportFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", CleanText(self.subject()), CleanText(&self.message()))
    }
}

impl Dump {
    /// Reported pointers that do not point to the start of a live block. Only dumps of the crate `dmd` contain such
    /// faults: at most 1,000 in each dump.
    pub fn report_faults(&self) -> Vec<ReportFault> {
        if self.faults.is_empty() {
            return Vec::new();
        }
        let frames = || self.stacks().flatten();
        let (framework, workspace, folds) =
            (FrameworkSources::from_frames(frames()), Workspace::from_frames(frames()), FoldRules::new());
        let mut found: Vec<ReportFault> = Vec::new();
        for FaultyPointer { kind, address, reporter, trace } in &self.faults {
            let path = self.reporters.get(*reporter as usize).map_or("", |reporter| &*reporter.path);
            let stack: Vec<CallFrame<'_>> =
                trace.index().map(|index| self.stack(index).collect()).unwrap_or_default();
            let says_nothing = |frame: &CallFrame<'_>| folds.reason(frame).is_some() || framework.has(frame);
            let by = stack.iter().find(|frame| !says_nothing(frame));
            // A closure belongs to the function that contains it.
            let name = |frame: &CallFrame<'_>| frame.name().trim_end_matches("::{{closure}}").to_owned();
            let reporter = by.map_or_else(String::new, name);
            let place = by.and_then(|frame| Some((frame.file?, frame.line?)));
            let place =
                place.map_or_else(String::new, |(file, line)| format!("{}:{line}", workspace.short(file)));
            let known = found.iter_mut().find(|known| {
                (known.kind, &*known.path, &known.reporter, &known.place) == (*kind, path, &reporter, &place)
            });
            match known {
                Some(known) => known.count += 1,
                None => found.push(ReportFault {
                    kind: *kind,
                    path: path.to_owned(),
                    count: 1,
                    address: *address,
                    reporter,
                    place,
                    stack: stack.iter().map(ToString::to_string).collect(),
                }),
            }
        }
        found
    }
}
