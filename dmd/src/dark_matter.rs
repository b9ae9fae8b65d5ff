//! Between the beginning and the end of a collection of reports: what is reported meanwhile, and the rows
//! that name the rest. One collection at a time; others get none, and neither does one inside a dump.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use memory_reporter::bridge::EachRow;

use crate::engine::{ENGINE, Phase};
use crate::options::Mode;

/// A collection is under way.
static COLLECTING: AtomicBool = AtomicBool::new(false);

/// In the child of a fork, where the thread that was collecting is missing.
pub(crate) fn forget_in_child() {
    COLLECTING.store(false, Ordering::Release);
}

pub(crate) extern "C" fn begin() -> bool {
    let wanted = cfg!(feature = "analyze")
        && ENGINE.phase() == Phase::On
        && ENGINE.setup().options.mode == Mode::DarkMatter;
    if !wanted {
        return false;
    }
    // Held while a dump runs the reporters.
    let Some(_dumping) = ENGINE.dumping.try_hold() else { return false };
    if COLLECTING.swap(true, Ordering::AcqRel) {
        return false;
    }
    ENGINE.begin_reports();
    true
}

#[cfg(feature = "analyze")]
pub(crate) extern "C" fn end(context: *mut c_void, each: EachRow) {
    use memory_reporter::bridge::DarkRow;

    // What is allocated for it goes by, the lookup of symbols above all.
    let _inside = crate::thread::Inside::deeper();
    if let Some(_dumping) = ENGINE.dumping.try_hold() {
        // A panic must not reach the caller, which may be another library.
        let rows = std::panic::catch_unwind(crate::analyze::dark_matter::rows).unwrap_or_default();
        for row in &rows {
            let bytes = i64::try_from(row.bytes).unwrap_or(i64::MAX);
            let told = DarkRow::new(&row.module, &row.function, bytes).estimated(row.estimated);
            let told = if row.twice { told.twice(&row.reporters) } else { told };
            each(context, &told);
        }
    }
    COLLECTING.store(false, Ordering::Release);
}

#[cfg(not(feature = "analyze"))]
pub(crate) extern "C" fn end(_: *mut c_void, _: EachRow) {
    COLLECTING.store(false, Ordering::Release);
}
