//! Holds signals while a dump is written: a handler may allocate, end the process, or never return. After a call of
//! [`leave_ending_open`], the [`ENDING`] signals are not held. Signals that the writes cause (by a file's limit, or a
//! pipe without a reader) are discarded, so that they do not end the program. Cancellation of the thread is also held,
//! since it would unwind the thread.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};

/// The signals that request the end of a process.
pub(crate) const ENDING: [c_int; 2] = [libc::SIGTERM, libc::SIGINT];

/// Whether [`ENDING`] signals may arrive while a dump is written.
static ENDING_OPEN: AtomicBool = AtomicBool::new(false);

/// From now on, the [`ENDING`] signals are not held while a dump is written.
pub(crate) fn leave_ending_open() {
    ENDING_OPEN.store(true, Ordering::Relaxed);
}

/// Whether this thread blocks a signal.
pub(crate) fn is_blocked(signal: c_int) -> bool {
    let mut blocked = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: a null pointer for the new set leaves the set, and `blocked` is a place for the set.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, null_mut(), blocked.as_mut_ptr()) };
    // SAFETY: all zeros are an empty set, and `pthread_sigmask` leaves them or fills the set.
    unsafe { libc::sigismember(blocked.as_ptr(), signal) == 1 }
}

/// Ends the process by a signal. The default action of the signal must end a process.
pub(crate) fn end_by(signal: c_int) -> ! {
    // Call the kernel by number: in `libdmd.so`, `sigaction` is the function that hides the engine's handler.
    let default = [0_u64; 4];
    let no_old = null_mut::<u64>();
    // SAFETY: `default` has the kernel's layout of an action, in which all zeros are the default action. A set of
    // signals has 8 bytes.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, &raw const default, no_old, 8_usize) };
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `set` is a place for the set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: `sigemptyset` made the set.
    unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    // SAFETY: the set is valid, and a null pointer requests no old set.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), null_mut()) };
    // SAFETY: the function has no precondition.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    // SAFETY: the call only sends a signal to this thread.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, signal) };
    // A filter of system calls forbids the signal. So the process exits with the status that a shell would return.
    // SAFETY: `_exit` ends the process.
    unsafe { libc::_exit(128 + signal) }
}

/// The kernel sends these signals to a thread that exceeds a file's limit, or that writes to a pipe without a reader.
const OF_WRITING: [i32; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

const CANCEL_DISABLE: c_int = 1;

/// Runs `body` while no handler runs in this thread. Signals that the writes of `body` caused are discarded.
pub(crate) fn held<T>(body: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `all` is a place for the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    if ENDING_OPEN.load(Ordering::Relaxed) {
        for signal in ENDING {
            // SAFETY: `sigfillset` filled the set.
            unsafe { libc::sigdelset(all.as_mut_ptr(), signal) };
        }
    }
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigfillset` filled the set, and `before` is a place for the old one.
    if unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) } != 0 {
        return body();
    }
    let mut cancel = 0;
    // SAFETY: `cancel` is a place for the old state.
    unsafe { pthread_setcancelstate(CANCEL_DISABLE, &raw mut cancel) };
    let waiting = OF_WRITING.map(is_pending);
    let result = body();
    for (signal, was_waiting) in OF_WRITING.into_iter().zip(waiting) {
        if !was_waiting && is_pending(signal) {
            take(signal);
        }
    }
    // SAFETY: the call above returned this state.
    unsafe { pthread_setcancelstate(cancel, null_mut()) };
    // SAFETY: `pthread_sigmask` above succeeded and wrote the set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut()) };
    result
}

fn is_pending(signal: i32) -> bool {
    let mut pending = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `pending` is a place for the set.
    if unsafe { libc::sigpending(pending.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: `sigpending` succeeded and filled the set.
    unsafe { libc::sigismember(pending.as_ptr(), signal) == 1 }
}

/// Discards a pending signal.
fn take(signal: i32) {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `set` is a place for the set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: `sigemptyset` made the set.
    unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set and the time are valid. A null pointer requests no details of the signal.
    unsafe { libc::sigtimedwait(set.as_ptr(), null_mut(), &raw const no_time) };
}

/// Blocks all signals in this thread, including the signals that the C library reserves for itself. Returns the
/// previous mask.
pub(crate) fn block_all() -> u64 {
    set_mask(!0)
}

/// Blocks exactly these signals in this thread, and returns the previous mask.
pub(crate) fn set_mask(signals: u64) -> u64 {
    let mut before = 0_u64;
    let bytes = size_of::<u64>();
    // SAFETY: `signals` is a set in the kernel's format, and `before` is a valid place for the old set.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const signals, &raw mut before, bytes)
    };
    before
}
