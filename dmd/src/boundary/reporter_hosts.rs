//! The connected programs, which link `memory-reporter`. The engine can run their reporters.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use core::time::Duration;

use memory_reporter::engine_abi::RunReporters;

pub(crate) use crate::system::libraries::pin;

/// The maximum number of connected programs. A process rarely has more than one copy of `memory-reporter`: only
/// libraries that link the crate themselves add copies.
const MOST: usize = 8;

/// One entry for each connected program: the function that runs the program's reporters. Unused entries are null.
static PROGRAMS: [AtomicPtr<c_void>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];

/// Adds a program by its function, unless it was added before, and keeps the program loaded.
pub(crate) fn add(run_reporters: RunReporters) {
    let program = run_reporters as *mut c_void;
    pin(program);
    for place in &PROGRAMS {
        let known = place.compare_exchange(null_mut(), program, Ordering::AcqRel, Ordering::Acquire);
        if known.is_ok() || known == Err(program) {
            return;
        }
    }
}

/// Runs the reporters of all programs.
pub(crate) fn run_reporters(deadline: Option<Duration>) {
    let milliseconds = deadline.map_or(0, |deadline| deadline.as_millis().max(1));
    let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
    for place in &PROGRAMS {
        let program = place.load(Ordering::Acquire);
        // SAFETY: `add` stores only functions of this type, and a null pointer is `None`.
        let program = unsafe { core::mem::transmute::<*mut c_void, Option<RunReporters>>(program) };
        if let Some(run_reporters) = program {
            run_reporters(milliseconds);
        }
    }
}
