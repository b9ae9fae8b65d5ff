//! Starts a thread of the engine in the child of a fork, some time after the fork: most children replace themselves by
//! another program first.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::OnceLock;

use crate::system::clock;

static START: OnceLock<fn()> = OnceLock::new();
/// Whether this is the child of a fork that has not started its thread.
static IS_WAITING: AtomicBool = AtomicBool::new(false);
/// The time of the fork, in nanoseconds.
static SINCE: AtomicU64 = AtomicU64::new(0);

const DELAY: Duration = Duration::from_millis(100);

/// Calls `start` in the children of forks. Only the first call counts.
pub(crate) fn register(start: fn()) {
    _ = START.set(start);
}

/// The child of a fork calls this.
pub(crate) fn after_fork_in_child() {
    if START.get().is_some() {
        SINCE.store(clock::nanoseconds(), Ordering::Relaxed);
        IS_WAITING.store(true, Ordering::Release);
    }
}

/// Starts the thread if it is due. Threads of the program call this from time to time.
#[inline]
pub(crate) fn start_if_due() {
    if IS_WAITING.load(Ordering::Relaxed) {
        start();
    }
}

#[cold]
fn start() {
    let passed = clock::nanoseconds().saturating_sub(SINCE.load(Ordering::Relaxed));
    if passed > DELAY.as_nanos() as u64
        && IS_WAITING.swap(false, Ordering::Acquire)
        && let Some(start) = START.get()
    {
        start();
    }
}
