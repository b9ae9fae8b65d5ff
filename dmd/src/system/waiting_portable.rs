//! Lets threads sleep until a word changes. This module is for systems without a call for that, so a waiting thread
//! checks the word repeatedly.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::thread;

use crate::system::errno::keeping_errno;

/// The number of checks before the thread sleeps: usually the holder of a lock frees it soon.
const QUICK_LOOKS: usize = 64;
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

/// Waits while the word has this value, or until the time is over; without a time, waits only an instant. May return
/// earlier.
pub(crate) fn wait(word: &AtomicU32, value: u32, longest: Option<Duration>) {
    // A signal that interrupts the sleep changes the error number.
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

/// Does nothing, since waiting threads check the word.
pub(crate) fn wake_one(_word: &AtomicU32) {}
