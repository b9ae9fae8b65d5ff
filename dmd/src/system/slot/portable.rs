//! The slot as a thread-local of Rust.
//!
//! The slot has a constant value and no destructor, so that the compiler places it into the thread's own data. Access
//! to the slot runs no code of Rust's library, and the slot lives as long as the thread. On Windows with GNU's tools,
//! Rust cannot place values into the thread's own data. There the slot is stored under a key of the system, in
//! separate memory (128 bytes) that stays allocated when the thread ends.

use core::mem::MaybeUninit;

use super::ThreadSlot;

// Rust registers a destructor for a value that has one, and denies access to the value after the destructor has run.
const _: () = assert!(!core::mem::needs_drop::<ThreadSlot>());

/// The slot of a new thread.
const fn fresh() -> ThreadSlot {
    // SAFETY: zeros are valid in all cells: they are numbers, null pointers, and `false`.
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
                // SAFETY: the call above made the key, and only this function has it.
                unsafe { TlsFree(fresh) };
                known
            }
        }
    }

    pub(super) fn slot() -> *const ThreadSlot {
        let key = key();
        // `TlsGetValue` sets the error number to 0. A program may free a block between a failed call and the check of
        // the error number.
        // SAFETY: `TlsAlloc` made the key, or the system rejects it.
        let known = keeping_errno(|| unsafe { TlsGetValue(key) }).cast::<ThreadSlot>();
        if !known.is_null() {
            return known;
        }
        // SAFETY: the size of the type is not 0. `System` calls no hook.
        let fresh = unsafe { System.alloc(Layout::new::<ThreadSlot>()) }.cast::<ThreadSlot>();
        // SAFETY: `TlsAlloc` made the key, or the system rejects it. Only this thread reads the value.
        if fresh.is_null() || unsafe { TlsSetValue(key, fresh.cast()) } == 0 {
            // Locks and the guard need a slot.
            std::process::abort();
        }
        // SAFETY: the memory is new and has the layout of this type.
        unsafe { fresh.write(super::fresh()) };
        fresh
    }
}

/// This thread's slot.
#[inline]
pub(crate) fn slot() -> &'static ThreadSlot {
    // SAFETY: the slot lives as long as the thread, and the reference does not leave the thread.
    unsafe { &*place::slot() }
}

/// Returns 0: the portable engine cannot read the thread pointer.
pub(crate) fn thread_pointer() -> usize {
    0
}
