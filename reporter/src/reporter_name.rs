//! What a reporter is called: asked of it once, by code of the program that may panic or collect.

use crate::isolation::{self, Ran};
use crate::malloc_size_of::MallocSizeOf;
use crate::memory_reporter::MemoryReporter;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;
use crate::warning::WarningKind;

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
    /// Asks a reporter, which is called after its panic if it panics. No lock may be held.
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

    /// What every collection says about the name.
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
