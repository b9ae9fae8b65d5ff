//! Locks: tried, never waited for. A poisoned one is read.
//!
//! A value that panics while it is measured must not poison the lock, which is the program's: the panic
//! waits until the lock is free again.
//!
//! Guards do not implement `MallocSizeOf`, so that a call on one means the value behind it.

use core::ops::Deref;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{
    Barrier, BarrierWaitResult, Condvar, Mutex, Once, OnceLock, OnceState, RwLock, TryLockError,
    WaitTimeoutResult,
};

use crate::impls::plain::plain;
use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;
use crate::skipped::SkipReason;

macro_rules! lock {
    ($($lock:ident, $try_lock:ident;)*) => {$(
        impl<T: MallocSizeOf + ?Sized> MallocSizeOf for $lock<T> {
            const NEEDS_WALK: bool = T::NEEDS_WALK;

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                if !T::NEEDS_WALK && !ops.wants_names() {
                    return 0;
                }
                match self.$try_lock() {
                    Ok(value) => held::<Self, T, R>(value, ops),
                    Err(TryLockError::Poisoned(value)) => held::<Self, T, R>(value.into_inner(), ops),
                    Err(TryLockError::WouldBlock) => ops.skip::<Self>(SkipReason::Locked),
                }
            }
        }
    )*};
}
lock!(Mutex, try_lock; RwLock, try_read;);

/// Measures what `lock` is held for. Were the guard dropped by the panic itself, it would poison the lock.
fn held<Lock: ?Sized, T: MallocSizeOf + ?Sized, R: Reading>(
    guard: impl Deref<Target = T>,
    ops: &mut MallocSizeOfOps<R>,
) -> usize {
    let measured = catch_unwind(AssertUnwindSafe(|| guard.size_of_excluding_this(ops)));
    drop(guard);
    measured.unwrap_or_else(|panic| {
        ops.skip::<Lock>(SkipReason::Panicked);
        resume_unwind(panic)
    })
}

impl<T: MallocSizeOf> MallocSizeOf for OnceLock<T> {
    const NEEDS_WALK: bool = T::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.get().map_or(0, |value| value.size_of_excluding_this(ops))
    }
}

// A few words of the operating system each, but for systems where std has to box them.
plain!([] Once, [] OnceState, [] Condvar, [] Barrier, [] BarrierWaitResult, [] WaitTimeoutResult);
