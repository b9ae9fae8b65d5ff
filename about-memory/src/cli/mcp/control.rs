//! The state that a running call shares with the thread that reads requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The state of a call that the tool and the reader of requests share.
#[derive(Default)]
pub(super) struct CallControl {
    is_cancelled: AtomicBool,
    message: Mutex<String>,
}

impl CallControl {
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// The mark that a cancellation sets.
    pub(super) fn cancelled(&self) -> &AtomicBool {
        &self.is_cancelled
    }

    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// The text of the next message about progress.
    pub(super) fn message(&self) -> String {
        self.message.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the text of the next message about progress.
    pub(super) fn say(&self, message: impl Into<String>) {
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = message.into();
    }
}
