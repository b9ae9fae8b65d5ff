//! Wakes the thread that runs the callbacks of limits, when the live bytes of a tag cross a limit.

use std::sync::OnceLock;
use std::thread::Thread;

static HELPER: OnceLock<Thread> = OnceLock::new();

/// The thread that the hooks wake. Only the first call has an effect.
pub(crate) fn set_helper(thread: Thread) {
    let _ = HELPER.set(thread);
}

/// Wakes the helper. The call neither allocates nor waits.
pub(super) fn notify() {
    if let Some(helper) = HELPER.get() {
        helper.unpark();
    }
}
