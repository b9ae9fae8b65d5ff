//! A child process traces the target. So a stopped thread gets its registers back even if the user ends about-memory.

use core::ffi::c_int;
use core::time::Duration;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::time::Instant;

use crate::error::AttachError;
use crate::ptrace::{self, PriorityGuard};

/// Runs `work` in a child process, and returns its text. The child outlives this process, if necessary.
///
/// # Errors
///
/// Returns [`AttachError::Slow`] if the work takes longer than `longest`: the child then continues. Also returns an
/// error if the child cannot be started.
pub(crate) fn run(longest: Duration, work: impl FnOnce() -> String) -> Result<String, AttachError> {
    let mut ends: [c_int; 2] = [0; 2];
    // SAFETY: `ends` is a place for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error().into());
    }
    // SAFETY: the descriptor is open, and only this value owns it.
    let mut from = unsafe { File::from_raw_fd(ends[0]) };
    // SAFETY: as above.
    let mut to = unsafe { File::from_raw_fd(ends[1]) };
    // SAFETY: the child runs `work`, which takes no lock of another thread of this process, and ends without
    // destructors.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error().into());
    }
    if child == 0 {
        // Signals of the terminal do not reach a new session.
        // SAFETY: the function has no precondition.
        unsafe { libc::setsid() };
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE, libc::SIGQUIT] {
            // SAFETY: the action is a constant of the C library.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        let priority = PriorityGuard::for_this_thread();
        let text = work();
        // Threads that are still late go on when this process ends.
        ptrace::let_late_threads_go();
        drop(priority);
        let _ = to.write_all(text.as_bytes());
        // SAFETY: the function ends the process.
        unsafe { libc::_exit(0) };
    }
    drop(to);
    let until = Instant::now() + longest;
    let mut text = Vec::new();
    let mut part = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, which is open.
        let ready = unsafe { libc::poll(&raw mut poll, 1, left.as_millis() as c_int) };
        if ready == 0 {
            return Err(AttachError::Slow(child as u32));
        }
        match from.read(&mut part) {
            Ok(0) => break,
            Ok(read) => text.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    // SAFETY: a null pointer requests no status.
    unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) };
    Ok(String::from_utf8_lossy(&text).into_owned())
}
