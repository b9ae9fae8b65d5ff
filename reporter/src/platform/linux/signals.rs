//! Firefox's signals. A handler may do next to nothing: it writes a byte to a pipe, and a thread
//! that reads the pipe does the work.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::error::ListenError;
use crate::live::Trigger;

use super::spawn_without_signals;

/// The pipe's end that handlers write to, and the process whose pipe it is: a child of a fork has
/// the handlers and the pipe, but not the thread.
static PIPE: AtomicI32 = AtomicI32::new(-1);
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Has `run` called on a thread of its own whenever SIGRTMIN (save a report) or SIGRTMIN + 1
/// (minimize memory usage first) comes in.
pub(crate) fn on_triggers(run: impl Fn(Trigger) + Send + 'static) -> Result<(), ListenError> {
    let signals = [libc::SIGRTMIN(), libc::SIGRTMIN() + 1];
    for signal in signals {
        if has_handler(signal)? {
            return Err(ListenError::SignalTaken(signal));
        }
    }
    let (mut from, to) = pipe().map_err(ListenError::Thread)?;
    // Never closed: a handler may run at any time.
    PIPE.store(to.into_raw_fd(), Ordering::SeqCst);
    OWNER.store(std::process::id(), Ordering::SeqCst);
    spawn_without_signals("memory-signals", move || {
        let mut byte = [0];
        while from.read_exact(&mut byte).is_ok() {
            run(if byte[0] == 0 { Trigger::Report } else { Trigger::MinimizeAndReport });
        }
    })
    .map_err(ListenError::Thread)?;
    for signal in signals {
        set_handler(signal)?;
    }
    Ok(())
}

fn signal_error(signal: i32) -> ListenError {
    ListenError::Signal(signal, io::Error::last_os_error())
}

#[allow(unsafe_code, reason = "asks the C library")]
fn has_handler(signal: i32) -> Result<bool, ListenError> {
    let mut found = core::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: there is room for an action, and no new one is set.
    if unsafe { libc::sigaction(signal, core::ptr::null(), found.as_mut_ptr()) } != 0 {
        return Err(signal_error(signal));
    }
    // SAFETY: the call has succeeded.
    let found = unsafe { found.assume_init() };
    Ok(found.sa_sigaction != libc::SIG_DFL)
}

#[allow(unsafe_code, reason = "asks the C library")]
fn set_handler(signal: i32) -> Result<(), ListenError> {
    // SAFETY: all zeros are an action without flags and with an empty mask.
    let mut action = unsafe { core::mem::zeroed::<libc::sigaction>() };
    action.sa_sigaction = handle as extern "C" fn(i32) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the action is complete, and its handler does only what a handler may.
    if unsafe { libc::sigaction(signal, &raw const action, core::ptr::null_mut()) } != 0 {
        return Err(signal_error(signal));
    }
    Ok(())
}

/// Neither allocates, locks nor panics, and leaves `errno` as it was.
#[allow(unsafe_code, reason = "asks the kernel")]
extern "C" fn handle(signal: i32) {
    // SAFETY: no precondition.
    if unsafe { libc::getpid() } as u32 != OWNER.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: no precondition.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the place is this thread's.
    let before = unsafe { errno.read() };
    let byte = u8::from(signal != libc::SIGRTMIN());
    // A full pipe has enough to do.
    // SAFETY: there is a byte to write.
    unsafe { libc::write(PIPE.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
    // SAFETY: the place is this thread's.
    unsafe { errno.write(before) };
}

/// A pipe to read from, waiting, and to write to, never waiting.
#[allow(unsafe_code, reason = "asks the kernel")]
fn pipe() -> io::Result<(File, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: there is room for two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the number is new, and nobody else's.
    let from = unsafe { File::from_raw_fd(ends[0]) };
    // SAFETY: the number is new, and nobody else's.
    let to = unsafe { OwnedFd::from_raw_fd(ends[1]) };
    // SAFETY: the number is that of an open pipe.
    if unsafe { libc::fcntl(ends[1], libc::F_SETFL, libc::O_NONBLOCK) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((from, to))
}
