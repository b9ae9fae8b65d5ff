//! The runs of reporters in which an engine marks blocks, and the engine's rows at the end of a collection.

use core::ffi::c_void;
use core::ptr::null_mut;

use super::marks::Marks;
use super::rows::{DarkMatterRow, DarkRow, RowsOutcome};
use super::{EngineTable, NO_PATH, engine};

/// A run of the reporters of one collection. An engine marks the blocks that they report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkingRun {
    engine: &'static EngineTable,
    number: u32,
}

impl MarkingRun {
    /// Starts a run; `None` without an engine that marks blocks. `rows` is whether the collection requests rows.
    pub(crate) fn begin(rows: bool) -> Option<Self> {
        let engine = engine()?;
        let number = (engine.begin)(rows);
        (number != 0).then_some(Self { engine, number })
    }

    /// A marker for one more reporter of the run.
    pub(crate) fn marker(self) -> ReporterMarker {
        ReporterMarker { run: self, number: (self.engine.new_reporter)() }
    }
}

/// One reporter of a run. The engine marks blocks for this reporter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReporterMarker {
    run: MarkingRun,
    number: u32,
}

impl ReporterMarker {
    /// Makes the marks of this thread belong to the reporter and its run, until the result is dropped.
    pub(crate) fn enter(self) -> MarkerEntry {
        let engine = self.run.engine;
        let before = ((engine.enter)(self.run.number), (engine.enter_reporter)(self.number));
        MarkerEntry { engine, before }
    }

    /// Removes the reporter's marks and these claims. The caller leaves the reporter's reports out of the collection.
    pub(crate) fn withdraw(self, claims: &[(Marks, i64)]) {
        let engine = self.run.engine;
        (engine.withdraw)(self.number, NO_PATH, 0);
        for (marks, bytes) in claims {
            (engine.withdraw)(0, marks.path, u64::try_from(*bytes).unwrap_or(0));
        }
    }

    /// Removes the reporter's marks for one path. The caller leaves the report with this path out of the collection.
    pub(crate) fn withdraw_report(self, marks: Marks) {
        (self.run.engine.withdraw)(self.number, marks.path, 0);
    }
}

#[derive(Debug)]
pub(crate) struct MarkerEntry {
    engine: &'static EngineTable,
    /// The previous run and the previous reporter of this thread.
    before: (u32, u32),
}

impl Drop for MarkerEntry {
    fn drop(&mut self) {
        (self.engine.enter)(self.before.0);
        (self.engine.enter_reporter)(self.before.1);
    }
}

/// A collection that requests rows of unreported memory. Its run must have started with `rows` = true. Dropping
/// this value ends the collection.
#[derive(Debug)]
pub(crate) struct DarkMatterCollection(Option<MarkingRun>);

impl DarkMatterCollection {
    pub(crate) fn new(run: MarkingRun) -> Self {
        Self(Some(run))
    }

    /// Ends the collection. Returns rows of the memory that no reporter or several reporters reported.
    #[allow(unsafe_code, reason = "calls a function of another library")]
    pub(crate) fn end(mut self) -> (RowsOutcome, Vec<DarkMatterRow>) {
        unsafe extern "C" fn add(context: *mut c_void, row: &DarkRow<'_>) {
            // SAFETY: the maker of the table guarantees that the engine passes the context unchanged. The context
            // points to the list `rows`, and no other code uses this list until `end` returns.
            let rows = unsafe { &mut *context.cast::<Vec<DarkMatterRow>>() };
            rows.push(row.read());
        }
        let mut rows = Vec::new();
        let Some(run) = self.0.take() else { return (RowsOutcome::None, rows) };
        // SAFETY: `add` expects a pointer to this list, and the list outlives the call.
        let told = unsafe { (run.engine.end)(run.number, (&raw mut rows).cast(), add) };
        (told, rows)
    }
}

impl Drop for DarkMatterCollection {
    #[allow(unsafe_code, reason = "calls a function of another library")]
    fn drop(&mut self) {
        extern "C" fn ignore(_: *mut c_void, _: &DarkRow<'_>) {}
        if let Some(run) = self.0.take() {
            // SAFETY: `ignore` ignores its context.
            unsafe { (run.engine.end)(run.number, null_mut(), ignore) };
        }
    }
}
