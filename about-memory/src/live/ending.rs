//! Handles the end of this process by a signal of its terminal or of `kill`.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{platform, temporary};

/// Before a signal ends this process, runs `restore` on a thread and removes temporary files, in whatever state the
/// other threads are. Ignored signals stay ignored.
///
/// # Errors
///
/// Returns an error if signal handlers cannot be installed or the thread cannot be started.
pub fn before_ending(restore: impl FnOnce() + Send + 'static) -> io::Result<()> {
    platform::end_by_signal(|| {}, || Duration::ZERO, and_remove(restore))
}

/// Whether a thread is about to end this process.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Waits forever if a signal is about to end this process. An operation that fails at that time fails because its files
/// were removed, and its error must not be printed.
pub fn wait_if_ending() {
    while IS_ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Removes temporary files first: `restore` may hang on a terminal that accepts no text.
fn and_remove(restore: impl FnOnce() + Send + 'static) -> impl FnOnce() + Send + 'static {
    move || {
        IS_ENDING.store(true, Ordering::SeqCst);
        temporary::remove_all();
        restore();
    }
}

/// The signals that end this process: SIGINT, SIGTERM, SIGHUP and SIGQUIT. After the first signal, the process ends by
/// itself. If that takes too long, or at a second signal, the signal ends the process. SIGQUIT ends the process without
/// this delay. Ignored signals stay ignored.
#[derive(Clone, Debug)]
pub struct EndSignals {
    has_begun: Arc<AtomicBool>,
    grace: Arc<Mutex<Duration>>,
}

impl EndSignals {
    /// Gives the process this time to end by itself after a signal. After that time, `restore` runs on a thread,
    /// temporary files are removed, and the signal ends the process.
    ///
    /// # Errors
    ///
    /// Returns an error if signal handlers cannot be installed or a thread cannot be started.
    pub fn new(grace: Duration, restore: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let ending = Self { has_begun: Arc::default(), grace: Arc::new(Mutex::new(grace)) };
        let (flag, grace) = (Arc::clone(&ending.has_begun), Arc::clone(&ending.grace));
        platform::end_by_signal(
            move || flag.store(true, Ordering::SeqCst),
            move || *grace.lock().unwrap_or_else(PoisonError::into_inner),
            and_remove(restore),
        )?;
        Ok(ending)
    }

    /// Whether a signal has arrived.
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// Returns a flag that becomes true when a signal arrives.
    pub fn flag(&self) -> &AtomicBool {
        &self.has_begun
    }

    /// Changes the time that the process has to end by itself.
    pub fn allow(&self, grace: Duration) {
        *self.grace.lock().unwrap_or_else(PoisonError::into_inner) = grace;
    }
}
