//! Whether filters of system calls were installed since the start: then any call of a dump may end the process,
//! as may the call that asks for them, so that nothing is asked at the end.
//!
//! `libdmd.so` sees the calls that install filters. A program with the wrapper, and filters that are installed
//! without the C library, are asked for.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::fs::File;
use std::io::Read;

use crate::system::slot::slot;

/// This thread's, as long as it is there.
static FIRST_THREAD: AtomicUsize = AtomicUsize::new(0);
static ANY: AtomicBool = AtomicBool::new(false);
static FIRST: AtomicBool = AtomicBool::new(false);
/// The process was started with filters: what they allow is enough for programs.
static AT_START: AtomicBool = AtomicBool::new(false);

fn this_thread() -> usize {
    core::ptr::from_ref(slot()).addr()
}

/// Notes how the process begins.
pub(crate) fn start() {
    FIRST_THREAD.store(this_thread(), Ordering::Relaxed);
    AT_START.store(filters_at_start(), Ordering::Relaxed);
}

/// A filter was installed for this thread, or for all.
pub fn note(all_threads: bool) {
    ANY.store(true, Ordering::Relaxed);
    if all_threads || this_thread() == FIRST_THREAD.load(Ordering::Relaxed) {
        FIRST.store(true, Ordering::Relaxed);
    }
}

/// Whether this thread may have a filter that it did not have at the start. A thread inherits the filters of the
/// thread that starts it, so after any filter was noted every thread except the first one may have it.
pub(crate) fn is_confined() -> bool {
    let noted = if this_thread() == FIRST_THREAD.load(Ordering::Relaxed) { &FIRST } else { &ANY };
    noted.load(Ordering::Relaxed) || (!AT_START.load(Ordering::Relaxed) && has_filters())
}

/// What the kernel says of itself: a filter without `prctl` may be there.
fn filters_at_start() -> bool {
    // Not from the heap, which is the program's or, as yet, not set up.
    let mut status = [0; 4096];
    let file = File::open("/proc/self/status");
    let read = file.and_then(|mut file| file.read(&mut status)).unwrap_or_default();
    let status = &status[..read];
    let line = status.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"Seccomp:"));
    line.is_some_and(|line| !line.ends_with(b"\t0"))
}

fn has_filters() -> bool {
    // SAFETY: asks a question.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP) != 0 }
}
