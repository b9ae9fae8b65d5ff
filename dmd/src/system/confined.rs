//! Whether the process has installed filters of system calls since its start. After that, any system call of a dump
//! may end the process. The system call that reads the filters may also end the process, so this module makes that call
//! only if it knows of no filter.
//!
//! `libdmd.so` sees calls that install filters. For a program with the wrapper, and for filters that are installed
//! without the C library, this module asks the kernel.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(target_os = "linux")]
use std::io;

#[cfg(target_os = "linux")]
use crate::system::errno::keeping_errno;
#[cfg(target_os = "linux")]
use crate::system::raw_file;
use crate::system::slot::slot;

/// The address of the first thread's slot. It is valid as long as that thread lives.
static FIRST_THREAD: AtomicUsize = AtomicUsize::new(0);
static ANY: AtomicBool = AtomicBool::new(false);
static FIRST: AtomicBool = AtomicBool::new(false);
static ALL: AtomicBool = AtomicBool::new(false);
/// Whether the process started with filters, for example in a container. Such filters allow the system calls that
/// programs usually make, and so the system calls of a dump.
static AT_START: AtomicBool = AtomicBool::new(false);

fn this_thread() -> usize {
    core::ptr::from_ref(slot()).addr()
}

/// Stores the first thread, and whether the process starts with filters.
pub(crate) fn start() {
    FIRST_THREAD.store(this_thread(), Ordering::Relaxed);
    AT_START.store(filters_at_start(), Ordering::Relaxed);
}

/// Records a new filter for this thread, or for all threads.
pub fn note(all_threads: bool) {
    ANY.store(true, Ordering::Relaxed);
    if all_threads {
        ALL.store(true, Ordering::Relaxed);
    }
    if all_threads || this_thread() == FIRST_THREAD.load(Ordering::Relaxed) {
        FIRST.store(true, Ordering::Relaxed);
    }
}

/// Whether a filter of any thread was recorded.
pub(crate) fn any_noted() -> bool {
    ANY.load(Ordering::Relaxed)
}

/// Whether a filter for all threads was recorded.
pub(crate) fn all_noted() -> bool {
    ALL.load(Ordering::Relaxed)
}

/// Whether this thread may have a filter that it did not have at the start. A thread inherits the filters of the
/// thread that starts it. So after a filter was recorded, every thread except the first thread may have this filter.
pub fn is_confined() -> bool {
    let noted = if this_thread() == FIRST_THREAD.load(Ordering::Relaxed) { &FIRST } else { &ANY };
    noted.load(Ordering::Relaxed) || (!AT_START.load(Ordering::Relaxed) && has_filters())
}

/// Reads the kernel's status file: a filter may forbid `prctl`.
#[cfg(target_os = "linux")]
fn filters_at_start() -> bool {
    // The buffer is not on the heap: the heap belongs to the program, or is not set up yet.
    let mut status = [0; 4096];
    let read = raw_file::read_start(c"/proc/self/status", &mut status);
    let status = &status[..read];
    let line = status.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"Seccomp:"));
    line.is_some_and(|line| !line.ends_with(b"\t0"))
}

/// Whether the kernel filters this thread's system calls. The error `EINVAL` means that the kernel has no filters, or
/// that an emulator does not support the call. Any other error comes from a filter that refuses the call.
#[cfg(target_os = "linux")]
fn has_filters() -> bool {
    keeping_errno(|| {
        // SAFETY: the call changes nothing.
        let answer = unsafe { libc::prctl(libc::PR_GET_SECCOMP) };
        answer > 0 || (answer < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL))
    })
}

#[cfg(not(target_os = "linux"))]
fn filters_at_start() -> bool {
    false
}

/// Returns false: this module does not support filters of other systems.
#[cfg(not(target_os = "linux"))]
fn has_filters() -> bool {
    false
}
