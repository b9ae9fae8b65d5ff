//! Starts and ends collections of reports, and computes the rows of dark matter: blocks that a collection did not
//! report, or reported twice. Only the collection that owns the marks gets rows (see [`runs`](crate::tables::runs)).

use memory_reporter::engine_abi::{DarkRow, RowsOutcome};

#[cfg(feature = "analyze")]
use crate::boundary::unreported;
use crate::engine::ENGINE;
use crate::options::Mode;
#[cfg(feature = "analyze")]
use crate::system::slot::Inside;
use crate::system::slot::slot;
use crate::tables::runs::RunNumber;

/// Starts a run of reporters. Returns its number, or 0 if the engine marks no blocks.
pub(crate) extern "C" fn begin(rows: bool) -> RunNumber {
    if !ENGINE.records() || ENGINE.setup().options.mode != Mode::DarkMatter {
        return 0;
    }
    let dumping = slot().run.get();
    if dumping != 0 {
        // This thread runs the reporters of a dump, so the run already has a number.
        return dumping;
    }
    let run = ENGINE.runs.next();
    // A thread that writes a dump holds `dumping` and reads the marks. This run must not reset the marks during
    // the dump.
    if rows
        && let Some(_dumping) = ENGINE.dumping.try_hold()
        && ENGINE.runs.claim(run)
    {
        ENGINE.begin_reports();
    }
    run
}

/// Ends a run that was started with rows, and calls `each` for every row.
#[cfg(feature = "analyze")]
pub(crate) fn end(run: RunNumber, each: &mut dyn FnMut(&DarkRow<'_>)) -> RowsOutcome {
    if slot().run.get() == run {
        return RowsOutcome::None;
    }
    // The engine does not record allocations made here; most of them are for the lookup of symbols.
    let _inside = Inside::deeper();
    let rows = rows(run);
    ENGINE.runs.give_up(run);
    let Some(rows) = rows else { return RowsOutcome::Lost };
    for row in &rows {
        let bytes = i64::try_from(row.bytes).unwrap_or(i64::MAX);
        let told = DarkRow::new(&row.module, &row.function, bytes).estimated(row.estimated);
        let told = match (row.twice, &row.type_name) {
            (true, _) => told.twice(&row.reporters),
            (false, Some(name)) => told.with_type(name),
            (false, None) => told,
        };
        each(&told);
    }
    RowsOutcome::Told
}

/// The rows of a run that owns the marks. `None` if another run has taken the marks, or if a thread writes a dump: the
/// dump also takes the marks.
#[cfg(feature = "analyze")]
fn rows(run: RunNumber) -> Option<Vec<dmd_analyze::dark_matter::DarkMatterRow>> {
    if !ENGINE.runs.is_owner(run) {
        return None;
    }
    let _dumping = ENGINE.dumping.try_hold()?;
    // A panic must not reach the caller, which may be another library.
    let rows = std::panic::catch_unwind(unreported::rows).unwrap_or_default();
    ENGINE.runs.is_owner(run).then_some(rows)
}

#[cfg(not(feature = "analyze"))]
pub(crate) fn end(run: RunNumber, _: &mut dyn FnMut(&DarkRow<'_>)) -> RowsOutcome {
    if slot().run.get() != run {
        ENGINE.runs.give_up(run);
    }
    RowsOutcome::None
}
