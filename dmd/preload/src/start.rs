//! How recording starts, once: at the first allocation that comes when the environment can be seen, or at the
//! latest when this library is initialised.

use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, Ordering};

use engine::__private::{Allocator, Recording, recording, run_self_test, say, start_preloaded};

use crate::real;

unsafe extern "C" {
    static environ: *mut *mut c_char;
}

static STARTED: AtomicBool = AtomicBool::new(false);

/// Starts if the environment can be seen: not yet, when the loader allocates.
#[cold]
pub(crate) fn try_to_start(allocator: Allocator) {
    // SAFETY: read before there is a second thread that could change it.
    let environment = unsafe { environ };
    if !environment.is_null() {
        start(environment, allocator);
    }
}

/// An executable may define the functions itself; then nobody calls ours.
fn say_if_not_called() {
    // SAFETY: a name that ends in 0.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr()) };
    if real::file_of(first) != real::file_of((&raw const STARTED).cast()) {
        say("the program has a malloc of its own: its blocks are not recorded");
    }
}

/// Starts, if nobody has done so. `allocator` is that of this library.
pub(crate) fn start(environment: *mut *mut c_char, allocator: Allocator) {
    if recording() == Recording::Undecided && !STARTED.swap(true, Ordering::AcqRel) {
        // SAFETY: the process's environment, before `main`.
        unsafe { start_preloaded(environment) };
        if recording() == Recording::Yes {
            say_if_not_called();
        }
        run_self_test(allocator);
    }
}
