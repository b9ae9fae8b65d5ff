//! Threads that sleep until a word changes, on systems without a call for that: they look again and again.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::thread;

use crate::system::errno::keeping_errno;

/// Looks before the thread sleeps: the holder of a lock is mostly about to free it.
const QUICK_LOOKS: usize = 64;
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

/// Waits while the word has this value, or for a time; without a time, for an instant. May return earlier.
pub(crate) fn wait(word: &AtomicU32, value: u32, longest: Option<Duration>) {
    // A signal that interrupts the sleep sets the error number.
    keeping_errno(|| {
        for _ in 0..QUICK_LOOKS {
            if word.load(Ordering::Relaxed) != value {
                return;
            }
            thread::yield_now();
        }
        let mut left = longest.unwrap_or(BETWEEN_LOOKS);
        while word.load(Ordering::Relaxed) == value && !left.is_zero() {
            let step = left.min(BETWEEN_LOOKS);
            thread::sleep(step);
            left -= step;
        }
    });
}

/// Does nothing: the threads look.
pub(crate) fn wake_one(_word: &AtomicU32) {}
