//! Calls that wait for children. A copy of the process, which a reader has requested, is a child that sends no signal:
//! only calls with `__WALL` or `__WCLONE` would find it. This module also hides the copy from such calls.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

use engine::__private::ProcessCopies;

use crate::real;

/// Whether a call with these options may find a copy.
fn finds_copies(options: c_int) -> bool {
    options & (libc::__WALL | libc::__WCLONE) != 0 && ProcessCopies::any()
}

/// Repeats a call that waits for a child, as long as the child that it finds is a copy. The call returns the number of
/// a process, 0 or -1.
///
/// If the thread is cancelled in the call, it unwinds through this function, which has nothing to drop.
fn wait(options: c_int, mut call: impl FnMut() -> c_int) -> c_int {
    loop {
        if finds_copies(options) && ProcessCopies::are_all_children() {
            // SAFETY: the function has no precondition.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: the C library gives each thread a valid pointer to its own errno.
            unsafe { *errno = libc::ECHILD };
            return -1;
        }
        let found = call();
        if !ProcessCopies::has_ended(found) {
            return found;
        }
    }
}

/// Behaves as the C library's function of this name.
///
/// # Safety
///
/// The contract of the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn waitpid(
    process: libc::pid_t,
    status: *mut c_int,
    options: c_int,
) -> libc::pid_t {
    real::known();
    // SAFETY: the program guarantees that the arguments suit this function; they are passed on unchanged.
    let call = || unsafe { real::waitpid(process, status, options) };
    if process > 0 { call() } else { wait(options, call) }
}

/// Behaves as the C library's function of this name.
///
/// # Safety
///
/// The contract of the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn wait3(
    status: *mut c_int,
    options: c_int,
    usage: *mut libc::rusage,
) -> libc::pid_t {
    real::known();
    // SAFETY: as for `waitpid`.
    wait(options, || unsafe { real::wait3(status, options, usage) })
}

/// Behaves as the C library's function of this name.
///
/// # Safety
///
/// The contract of the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn wait4(
    process: libc::pid_t,
    status: *mut c_int,
    options: c_int,
    usage: *mut libc::rusage,
) -> libc::pid_t {
    real::known();
    // SAFETY: as for `waitpid`.
    let call = || unsafe { real::wait4(process, status, options, usage) };
    if process > 0 { call() } else { wait(options, call) }
}

/// Behaves as the C library's function of this name.
///
/// # Safety
///
/// The contract of the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn waitid(
    kind: libc::idtype_t,
    id: libc::id_t,
    info: *mut libc::siginfo_t,
    options: c_int,
) -> c_int {
    real::known();
    if kind != libc::P_ALL && kind != libc::P_PGID || !finds_copies(options) {
        // SAFETY: as for `waitpid`.
        return unsafe { real::waitid(kind, id, info, options) };
    }
    let mut own = MaybeUninit::<libc::siginfo_t>::zeroed();
    let info = if info.is_null() { own.as_mut_ptr() } else { info };
    let found = wait(options, || {
        // SAFETY: the program passes the arguments, and `info` is a valid place for the result.
        if unsafe { real::waitid(kind, id, info, options) } != 0 {
            return -1;
        }
        // SAFETY: the call succeeded, so it has filled the place.
        let info = unsafe { &*info };
        // SAFETY: a call that waits for a child sets the number of the process.
        let found = unsafe { info.si_pid() };
        if options & libc::WNOWAIT != 0 && ProcessCopies::has(found) {
            // Collect the copy: the next call would find it again.
            // SAFETY: a null pointer requests no status.
            unsafe { real::waitpid(found, null_mut(), libc::__WALL) };
        }
        found
    });
    if found < 0 { -1 } else { 0 }
}
