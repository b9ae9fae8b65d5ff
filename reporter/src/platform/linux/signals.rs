//! Firefox's signals. A signal handler may call few functions, so this handler only writes a byte to a pipe. A thread
//! reads the pipe and does the work.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::platform::{ListenError, SignalTrigger};

use super::spawn_without_signals;

/// The end of the pipe to which handlers write. [`OWNER`] is the process that owns the pipe: the child of a fork has
/// the handlers and the pipe, but not the thread.
static PIPE: AtomicI32 = AtomicI32::new(-1);
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Calls `run` on its own thread whenever SIGRTMIN (save a report) or SIGRTMIN + 1 (minimize memory usage first)
/// arrives.
pub(crate) fn on_triggers(run: impl Fn(SignalTrigger) + Send + 'static) -> Result<(), ListenError> {
    let signals = [libc::SIGRTMIN(), libc::SIGRTMIN() + 1];
    for signal in signals {
        if action_of(signal)? != libc::SIG_DFL {
            return Err(ListenError::SignalTaken(signal));
        }
    }
    let (mut from, to) = pipe().map_err(ListenError::Thread)?;
    // The pipe is never closed, since a handler may run at any time.
    PIPE.store(to.into_raw_fd(), Ordering::SeqCst);
    OWNER.store(std::process::id(), Ordering::SeqCst);
    spawn_without_signals(
        "memory-signals",
        Box::new(move || {
            let mut byte = [0];
            while from.read_exact(&mut byte).is_ok() {
                run(if byte[0] == 0 { SignalTrigger::Report } else { SignalTrigger::MinimizeAndReport });
            }
        }),
    )
    .map_err(ListenError::Thread)?;
    let handled = signals.into_iter().try_for_each(set_handler);
    if handled.is_err() {
        ignore_triggers();
    }
    handled
}

/// Restores the default action of both signals, if this process has called [`on_triggers`] and not yet this function.
#[allow(unsafe_code, reason = "calls the C library")]
pub(crate) fn ignore_triggers() {
    if OWNER.load(Ordering::SeqCst) != std::process::id() {
        return;
    }
    for signal in [libc::SIGRTMIN(), libc::SIGRTMIN() + 1] {
        if action_of(signal).is_ok_and(|action| action == OWN_ACTION as usize) {
            // SAFETY: the default action is valid for both signals.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
    OWNER.store(0, Ordering::SeqCst);
}

const OWN_ACTION: extern "C" fn(i32) = handle;

fn signal_error(signal: i32) -> ListenError {
    ListenError::Signal(signal, io::Error::last_os_error())
}

/// The address of the signal's handler, or a constant of the system such as `SIG_DFL`.
#[allow(unsafe_code, reason = "calls the C library")]
fn action_of(signal: i32) -> Result<usize, ListenError> {
    let mut found = core::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: `found` has room for one action, and a null pointer for the new action changes nothing.
    if unsafe { libc::sigaction(signal, core::ptr::null(), found.as_mut_ptr()) } != 0 {
        return Err(signal_error(signal));
    }
    // SAFETY: `sigaction` has succeeded and filled the action.
    let found = unsafe { found.assume_init() };
    Ok(found.sa_sigaction)
}

#[allow(unsafe_code, reason = "calls the C library")]
fn set_handler(signal: i32) -> Result<(), ListenError> {
    // SAFETY: `sigaction` is a C struct for which all zeros are valid: no flags and an empty mask.
    let mut action = unsafe { core::mem::zeroed::<libc::sigaction>() };
    action.sa_sigaction = OWN_ACTION as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the action is complete, and `handle` calls only functions that are safe in a signal handler.
    if unsafe { libc::sigaction(signal, &raw const action, core::ptr::null_mut()) } != 0 {
        return Err(signal_error(signal));
    }
    Ok(())
}

/// Handles a signal. This function does not allocate, lock or panic, and keeps `errno`.
#[allow(unsafe_code, reason = "calls the kernel")]
extern "C" fn handle(signal: i32) {
    // SAFETY: `getpid` has no precondition.
    if unsafe { libc::getpid() } as u32 != OWNER.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: `__errno_location` has no precondition.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the C library returns the address of this thread's `errno`, which is valid while the thread runs.
    let before = unsafe { errno.read() };
    let byte = u8::from(signal != libc::SIGRTMIN());
    // A full pipe means that enough requests are waiting.
    // SAFETY: `byte` is one readable byte, and `PIPE` is never closed.
    unsafe { libc::write(PIPE.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
    // SAFETY: the C library returned the address of this thread's `errno`, which is valid while the thread runs.
    unsafe { errno.write(before) };
}

/// A pipe. Reads wait; writes do not.
#[allow(unsafe_code, reason = "calls the kernel")]
fn pipe() -> io::Result<(File, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `pipe2` has just opened this descriptor, and nothing else owns it.
    let from = unsafe { File::from_raw_fd(ends[0]) };
    // SAFETY: `pipe2` has just opened this descriptor, and nothing else owns it.
    let to = unsafe { OwnedFd::from_raw_fd(ends[1]) };
    // SAFETY: the descriptor is open, since `to` owns it.
    if unsafe { libc::fcntl(ends[1], libc::F_SETFL, libc::O_NONBLOCK) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((from, to))
}
