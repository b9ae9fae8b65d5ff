//! Whether the wrapper's hooks do nothing. This is a separate flag, so that a hook that is off costs only one read of
//! it.

use core::sync::atomic::{AtomicBool, Ordering};

static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Whether the hooks are off: forever, or until the engine in this copy of the library gets a request.
#[inline(always)]
pub(crate) fn is_off() -> bool {
    IS_OFF.load(Ordering::Relaxed)
}

/// Switches the hooks off or on.
pub(crate) fn set_off(off: bool) {
    IS_OFF.store(off, Ordering::Relaxed);
}
