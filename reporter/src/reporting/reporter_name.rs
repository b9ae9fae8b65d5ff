//! The name of a reporter. The reporter gives it once, by code of the program that may panic or collect.

use memory_report::WarningKind;

use crate::measure::{MallocSizeOf, MallocSizeOfOps, Reading};

use super::isolation::{self, Ran};
use super::memory_reporter::MemoryReporter;

#[derive(Clone, Debug)]
pub(crate) struct ReporterName {
    text: String,
    fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Panicked,
    Nested,
}

impl ReporterName {
    /// Asks a reporter for its name; the text of its panic if it panics. No lock may be held.
    pub(crate) fn ask(reporter: &dyn MemoryReporter) -> Self {
        let Ran { result, nested } = isolation::as_reporter(|| reporter.name().to_owned());
        match result {
            Ok(text) => Self { text, fault: nested.then_some(Fault::Nested) },
            Err(panic) => {
                let text = format!("(name() panicked: {})", panic.escape_debug());
                Self { text, fault: Some(Fault::Panicked) }
            }
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The warning that every collection gives about the name.
    pub(crate) fn warning(&self) -> Option<(WarningKind, &'static str)> {
        match self.fault? {
            Fault::Panicked => {
                Some((WarningKind::Panicked, "its name() panicked; it runs under this name instead"))
            }
            Fault::Nested => {
                Some((WarningKind::Nested, "its name() called collect_reports; nothing was collected there"))
            }
        }
    }
}

impl MallocSizeOf for ReporterName {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        ops.field("text", &self.text)
    }
}
