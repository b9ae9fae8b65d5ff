//! The end of this process by a signal of its terminal or of `kill`.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{platform, temporary};

/// Before a signal ends this process, runs `restore` on a thread and removes temporary files, whatever the other threads
/// do at that time. Ignored signals stay ignored.
///
/// # Errors
///
/// If signal handlers cannot be installed or the thread cannot be started.
pub fn before_ending(restore: impl FnOnce() + Send + 'static) -> io::Result<()> {
    platform::end_by_signal(|| {}, || Duration::ZERO, and_remove(restore))
}

/// Whether a thread is about to end this process.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Waits for ever if a signal is about to end this process: what fails now fails since its files are gone, and the process
/// ends by the signal.
pub fn wait_if_ending() {
    while IS_ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Temporary files go first: a terminal may accept no text.
fn and_remove(restore: impl FnOnce() + Send + 'static) -> impl FnOnce() + Send + 'static {
    move || {
        IS_ENDING.store(true, Ordering::SeqCst);
        temporary::remove_all();
        restore();
    }
}

/// The signals that end this process: SIGINT, SIGTERM and SIGHUP. After the first, the process ends by itself. If that takes
/// too long, or at a second signal, it ends by the signal. Ignored signals stay ignored.
#[derive(Clone, Debug)]
pub struct EndSignals {
    has_begun: Arc<AtomicBool>,
    grace: Arc<Mutex<Duration>>,
}

impl EndSignals {
    /// Gives the process this time to end by itself after a signal. If it has to be ended, `restore` runs on a thread, and
    /// temporary files go.
    ///
    /// # Errors
    ///
    /// If signal handlers cannot be installed or a thread cannot be started.
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

    /// Whether a signal has come.
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// Is true once a signal has come.
    pub fn flag(&self) -> &AtomicBool {
        &self.has_begun
    }

    /// From now on the process has this time to end by itself.
    pub fn allow(&self, grace: Duration) {
        *self.grace.lock().unwrap_or_else(PoisonError::into_inner) = grace;
    }
}
