//! The slot in a thread-local of Rust.
//!
//! It has a constant value and no destructor, so that the compiler places it into the thread's own data: reaching it
//! runs no code of Rust, and it lives as long as the thread. Windows with GNU's tools has no such data for Rust: there
//! the slot is behind a key of the system, in memory of its own that stays when the thread ends (128 bytes).

use core::mem::MaybeUninit;

use super::ThreadSlot;

// Rust registers a destructor for a value that has one, and gives no value after it has run.
const _: () = assert!(!core::mem::needs_drop::<ThreadSlot>());

/// The slot of a new thread.
const fn fresh() -> ThreadSlot {
    // SAFETY: zeros are valid in all its cells: numbers, null pointers, and `false`.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

#[cfg(not(all(windows, target_env = "gnu")))]
mod place {
    use super::ThreadSlot;

    std::thread_local! {
        static SLOT: ThreadSlot = const { super::fresh() };
    }

    pub(super) fn slot() -> *const ThreadSlot {
        SLOT.with(core::ptr::from_ref)
    }
}

#[cfg(all(windows, target_env = "gnu"))]
mod place {
    use core::alloc::{GlobalAlloc, Layout};
    use core::sync::atomic::{AtomicU32, Ordering};
    use std::alloc::System;

    use windows_sys::Win32::System::Threading::{
        TLS_OUT_OF_INDEXES, TlsAlloc, TlsFree, TlsGetValue, TlsSetValue,
    };

    use super::ThreadSlot;
    use crate::system::errno::keeping_errno;

    /// The key; [`TLS_OUT_OF_INDEXES`] before the first call.
    static KEY: AtomicU32 = AtomicU32::new(TLS_OUT_OF_INDEXES);

    fn key() -> u32 {
        let known = KEY.load(Ordering::Acquire);
        if known != TLS_OUT_OF_INDEXES {
            return known;
        }
        // SAFETY: the function has no precondition.
        let fresh = unsafe { TlsAlloc() };
        match KEY.compare_exchange(TLS_OUT_OF_INDEXES, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => fresh,
            Err(known) => {
                // SAFETY: the key above, which only this module knows.
                unsafe { TlsFree(fresh) };
                known
            }
        }
    }

    pub(super) fn slot() -> *const ThreadSlot {
        let key = key();
        // `TlsGetValue` sets the error number to 0, and a program may free a block between a call that fails and the
        // question why.
        // SAFETY: a key of `TlsAlloc`, or a number that the system refuses.
        let known = keeping_errno(|| unsafe { TlsGetValue(key) }).cast::<ThreadSlot>();
        if !known.is_null() {
            return known;
        }
        // SAFETY: the type has a size. `System` calls no hook.
        let fresh = unsafe { System.alloc(Layout::new::<ThreadSlot>()) }.cast::<ThreadSlot>();
        // SAFETY: a key as above; the value is for this thread only.
        if fresh.is_null() || unsafe { TlsSetValue(key, fresh.cast()) } == 0 {
            // Without a slot no lock and no guard works.
            std::process::abort();
        }
        // SAFETY: fresh memory for this type.
        unsafe { fresh.write(super::fresh()) };
        fresh
    }
}

/// This thread's slot.
#[inline]
pub(crate) fn slot() -> &'static ThreadSlot {
    // SAFETY: it lives as long as the thread, and the reference does not leave the thread.
    unsafe { &*place::slot() }
}

/// 0: this engine does not know the thread pointer.
pub(crate) fn thread_pointer() -> usize {
    0
}
