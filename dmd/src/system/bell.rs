//! Wakes a thread of the engine from other threads.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

use crate::system::waiting;

/// Wakes a thread that waits.
pub(crate) struct Bell {
    rings: AtomicU32,
    is_awaited: AtomicBool,
    is_lost: AtomicBool,
}

impl Bell {
    pub(crate) const fn new() -> Self {
        Self { rings: AtomicU32::new(0), is_awaited: AtomicBool::new(false), is_lost: AtomicBool::new(false) }
    }

    /// Wakes the thread that waits, if there is one.
    pub(crate) fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.is_awaited.swap(false, Ordering::SeqCst) {
            waiting::wake_one(&self.rings);
        }
    }

    /// The number of rings so far.
    pub(crate) fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Waits until the number of rings differs from `known`, or until the time is over.
    pub(crate) fn wait(&self, known: u32, longest: Duration) {
        self.is_awaited.store(true, Ordering::SeqCst);
        waiting::wait(&self.rings, known, Some(longest));
        self.is_awaited.store(false, Ordering::SeqCst);
    }

    /// Stores whether the system refused to continue the thread.
    pub(crate) fn set_lost(&self, is_lost: bool) {
        self.is_lost.store(is_lost, Ordering::SeqCst);
    }

    /// Whether ringing has no effect, since the system refused to continue the thread.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }
}
