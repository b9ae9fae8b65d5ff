//! Cleanup before a signal ends this process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::platform;

/// Runs `restore` on a thread before a signal of a terminal or of `kill` ends this process, whatever the other threads
/// do at that time. Ignored signals stay ignored.
///
/// # Errors
///
/// If signal handlers cannot be installed or the thread cannot be started.
pub fn before_ending(restore: impl FnOnce() + Send + 'static) -> io::Result<()> {
    platform::before_ending(restore)
}

/// Lets SIGINT, SIGTERM and SIGHUP set a flag in place of ending this process. Ignored signals stay ignored.
///
/// # Errors
///
/// If signal handlers cannot be installed.
pub fn note_ending(flag: &Arc<AtomicBool>) -> io::Result<()> {
    platform::note_ending(flag)
}
