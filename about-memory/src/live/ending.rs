//! Being ended by a signal.

use std::io;

use crate::platform;

/// Has `restore` run before a signal that asks this process to end (of a terminal, of `kill`) does so, whatever
/// the other threads do meanwhile. Signals that are ignored stay so.
///
/// # Errors
///
/// If there can be no handlers of signals, or no thread.
pub fn before_ending(restore: impl FnOnce() + Send + 'static) -> io::Result<()> {
    platform::before_ending(restore)
}
