//! Calls a function of the engine when a thread ends.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::system::errno::keeping_errno;

/// The key of the system plus 1; 0 if there is no key.
static KEY: AtomicU64 = AtomicU64::new(0);

/// The number of rounds of destructors of thread-specific data in which `ends` runs: except in the last round, it must
/// call [`watch`] again. Systems repeat the destructors as long as there are new values, and POSIX guarantees four
/// rounds. A thread whose first event is in another destructor has three rounds left.
#[cfg(unix)]
pub(crate) const ROUNDS: u8 = 3;
#[cfg(windows)]
pub(crate) const ROUNDS: u8 = 1;

/// Makes the key. From now on, `ends` runs at the end of each thread that called [`watch`]. Called once.
#[cfg(unix)]
#[allow(clippy::useless_conversion, reason = "the key has another type on macOS")]
pub(crate) fn start(ends: extern "C" fn(*mut c_void)) {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is a place for the key, and `ends` is a function that takes such a pointer.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ends)) } == 0 {
        KEY.store(u64::from(key) + 1, Ordering::Release);
    }
}

/// Makes the system call `ends` with `pointer` at the end of this thread. `pointer` is not null. The C library may
/// allocate a list for the key.
#[cfg(unix)]
#[allow(clippy::unnecessary_cast, reason = "the key has another type on macOS")]
pub(crate) fn watch(pointer: *mut c_void) {
    if let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) {
        keeping_errno(|| {
            // SAFETY: `start` made the key, and it is never deleted.
            unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, pointer) };
        });
    }
}

/// Makes the key. From now on, `ends` runs at the end of each thread or fiber that called [`watch`]. Called once.
#[cfg(windows)]
pub(crate) fn start(ends: extern "C" fn(*mut c_void)) {
    use std::sync::OnceLock;

    use windows_sys::Win32::System::Threading::{FLS_OUT_OF_INDEXES, FlsAlloc};

    static ENDS: OnceLock<extern "C" fn(*mut c_void)> = OnceLock::new();

    unsafe extern "system" fn call(pointer: *const c_void) {
        if let Some(ends) = ENDS.get() {
            ends(pointer.cast_mut());
        }
    }

    ENDS.get_or_init(|| ends);
    // SAFETY: the function accepts any pointer.
    let key = unsafe { FlsAlloc(Some(call)) };
    if key != FLS_OUT_OF_INDEXES {
        KEY.store(u64::from(key) + 1, Ordering::Release);
    }
}

/// Makes the system call `ends` with `pointer` at the end of this thread. `pointer` is not null.
#[cfg(windows)]
pub(crate) fn watch(pointer: *mut c_void) {
    use windows_sys::Win32::System::Threading::FlsSetValue;

    if let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) {
        keeping_errno(|| {
            // SAFETY: `start` made the key, and it is never deleted.
            unsafe { FlsSetValue(key as u32, pointer) };
        });
    }
}
