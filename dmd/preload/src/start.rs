//! Starts recording once: at the first allocation after the C library has set `environ`, and not later than when the
//! loader initializes this library.

use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, Ordering};

use engine::__private::{
    Allocator, PreloadRecording, recording, run_self_test, start_preloaded, system_call_at,
};

use crate::confine;

unsafe extern "C" {
    static environ: *mut *mut c_char;
}

static STARTED: AtomicBool = AtomicBool::new(false);

/// Starts if `environ` is set. The allocations of the loader happen before it is set.
#[cold]
pub(crate) fn try_to_start(allocator: Allocator) {
    // SAFETY: this runs before the program starts a second thread, so no thread changes the variable during the call.
    let environment = unsafe { environ };
    if !environment.is_null() {
        start(environment, allocator);
    }
}

/// Starts unless an earlier call has started. `allocator` is [`THIS_LIBRARY`](crate::malloc::THIS_LIBRARY).
pub(crate) fn start(environment: *mut *mut c_char, allocator: Allocator) {
    if recording() == PreloadRecording::Undecided && !STARTED.swap(true, Ordering::AcqRel) {
        system_call_at(confine::entry());
        // SAFETY: both callers pass the environment of the process, and `main` has not run, so it is unchanged.
        unsafe { start_preloaded(environment) };
        run_self_test(allocator);
    }
}
