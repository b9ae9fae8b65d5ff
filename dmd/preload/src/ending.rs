//! Calls that read or set the action of a signal. If a program has no handler for SIGTERM or SIGINT, the engine
//! installs a handler that writes the last dump. These functions hide the engine's handler from the program.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};

use engine::__private::HiddenHandler;

use crate::real;

/// Behaves as the C library's function of this name.
///
/// # Safety
///
/// Both actions are valid or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // Make sure that the C library's functions are looked up, even if the program has not allocated yet.
    real::known();
    if !HiddenHandler::concerns(signal) {
        // SAFETY: the program's arguments are passed on unchanged.
        return unsafe { real::sigaction(signal, new, old) };
    }
    let mut found = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the caller passes null or a valid action.
    let new = unsafe { new.as_ref() }.map(|new| match new.sa_sigaction {
        libc::SIG_DFL => HiddenHandler::instead_of_default(),
        _ => *new,
    });
    let new = new.as_ref().map_or(null(), core::ptr::from_ref);
    // SAFETY: `new` is null or an action, and `found` is a valid place for the old action.
    let result = unsafe { real::sigaction(signal, new, found.as_mut_ptr()) };
    if result == 0 && !old.is_null() {
        // SAFETY: all zeros are valid, and `sigaction` leaves them or fills the action.
        let found = unsafe { found.assume_init() };
        // SAFETY: the caller passes a valid place for the old action.
        unsafe { old.write(HiddenHandler::seen(found)) };
    }
    result
}

/// Behaves as the C library's function of this name.
///
/// # Safety
///
/// The handler is a function for signals, or one of the C library's constants.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
    real::known();
    // SAFETY: the program's arguments are passed on unchanged.
    let before = unsafe { real::signal(signal, handler) };
    if !HiddenHandler::concerns(signal) || before == libc::SIG_ERR {
        return before;
    }
    if handler == libc::SIG_DFL {
        let ours = HiddenHandler::instead_of_default();
        // SAFETY: the action is complete, and its handler is for this signal.
        unsafe { real::sigaction(signal, &raw const ours, null_mut()) };
    }
    // SAFETY: all zeros are a valid action.
    let mut found = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    found.sa_sigaction = before;
    HiddenHandler::seen(found).sa_sigaction
}
