//! Whether the process installed filters of system calls since its start. Then any system call of a dump may end
//! the process, and so may the call that asks for filters. So this module asks only if it knows of none.
//!
//! `libdmd.so` sees calls that install filters. For a program with the wrapper, and for filters that are installed
//! without the C library, this module asks the kernel.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(target_os = "linux")]
use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::{self, Read};

#[cfg(target_os = "linux")]
use crate::system::errno::keeping_errno;
use crate::system::slot::slot;

/// The address of the first thread's slot, as long as that thread lives.
static FIRST_THREAD: AtomicUsize = AtomicUsize::new(0);
static ANY: AtomicBool = AtomicBool::new(false);
static FIRST: AtomicBool = AtomicBool::new(false);
static ALL: AtomicBool = AtomicBool::new(false);
/// The process started with filters: what they allow is enough for programs.
static AT_START: AtomicBool = AtomicBool::new(false);

fn this_thread() -> usize {
    core::ptr::from_ref(slot()).addr()
}

/// Notes the thread and the filters that the process starts with.
pub(crate) fn start() {
    FIRST_THREAD.store(this_thread(), Ordering::Relaxed);
    AT_START.store(filters_at_start(), Ordering::Relaxed);
}

/// Notes a new filter for this thread, or for all.
pub fn note(all_threads: bool) {
    ANY.store(true, Ordering::Relaxed);
    if all_threads {
        ALL.store(true, Ordering::Relaxed);
    }
    if all_threads || this_thread() == FIRST_THREAD.load(Ordering::Relaxed) {
        FIRST.store(true, Ordering::Relaxed);
    }
}

/// Whether any thread was seen to install a filter.
pub(crate) fn any_noted() -> bool {
    ANY.load(Ordering::Relaxed)
}

/// Whether a filter was seen that holds for all threads.
pub(crate) fn all_noted() -> bool {
    ALL.load(Ordering::Relaxed)
}

/// Whether this thread may have a filter that it did not have at the start. A thread inherits the filters of the
/// thread that starts it, so after any filter was noted every thread except the first one may have it.
pub fn is_confined() -> bool {
    let noted = if this_thread() == FIRST_THREAD.load(Ordering::Relaxed) { &FIRST } else { &ANY };
    noted.load(Ordering::Relaxed) || (!AT_START.load(Ordering::Relaxed) && has_filters())
}

/// Reads the kernel's status file, since a filter may forbid `prctl`.
#[cfg(target_os = "linux")]
fn filters_at_start() -> bool {
    // The buffer is not on the heap, which is the program's or not set up yet.
    let mut status = [0; 4096];
    let file = File::open("/proc/self/status");
    let read = file.and_then(|mut file| file.read(&mut status)).unwrap_or_default();
    let status = &status[..read];
    let line = status.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"Seccomp:"));
    line.is_some_and(|line| !line.ends_with(b"\t0"))
}

/// A kernel without filters, or an emulator, does not know the question. A filter refuses it with another error.
#[cfg(target_os = "linux")]
fn has_filters() -> bool {
    keeping_errno(|| {
        // SAFETY: a question that changes nothing.
        let answer = unsafe { libc::prctl(libc::PR_GET_SECCOMP) };
        answer > 0 || (answer < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL))
    })
}

#[cfg(not(target_os = "linux"))]
fn filters_at_start() -> bool {
    false
}

/// This module knows no filters of other systems.
#[cfg(not(target_os = "linux"))]
fn has_filters() -> bool {
    false
}
