//! The name of a reporter. The program's method `name` returns it, and is called once. The method may panic, or start a
//! collection.

use memory_report::WarningKind;

use crate::measure::{MallocSizeOf, MallocSizeOfOps, Reading};

use super::isolation::{self, ContainedResult};
use super::memory_reporter::MemoryReporter;

#[derive(Clone, Debug)]
pub(crate) struct ReporterName {
    text: String,
    fault: Option<NameFault>,
}

#[derive(Clone, Copy, Debug)]
enum NameFault {
    Panicked,
    Nested,
}

impl ReporterName {
    /// Calls a reporter's `name`. If it panics, the text of the panic becomes the name. No lock may be held.
    pub(crate) fn ask(reporter: &dyn MemoryReporter) -> Self {
        let ContainedResult { result, nested } = isolation::as_reporter(|| reporter.name().to_owned());
        match result {
            Ok(text) => Self { text, fault: nested.then_some(NameFault::Nested) },
            Err(panic) => {
                let text = format!("(name() panicked: {})", panic.escape_debug());
                Self { text, fault: Some(NameFault::Panicked) }
            }
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The warning that every collection contains about the name; `None` if the name is good.
    pub(crate) fn warning(&self) -> Option<(WarningKind, &'static str)> {
        match self.fault? {
            NameFault::Panicked => Some((
                WarningKind::Panicked,
                "its name() panicked; the reporter runs under this name instead",
            )),
            NameFault::Nested => {
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
