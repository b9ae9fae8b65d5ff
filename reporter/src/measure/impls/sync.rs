//! Locks: the walk tries a lock and never waits. It also measures the value behind a poisoned lock.
//!
//! A panic while a value is measured must not poison the program's lock, so the panic continues only after the lock
//! is released.
//!
//! Guards do not implement `MallocSizeOf`, so that a call on a guard reaches the value behind it.

use core::ops::Deref;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{
    Barrier, BarrierWaitResult, Condvar, Mutex, Once, OnceLock, OnceState, RwLock, TryLockError,
    WaitTimeoutResult,
};

use memory_report::SkipReason;

use crate::measure::impls::plain::plain;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reach::MeasuredLock;
use crate::measure::reading::Reading;

macro_rules! lock {
    ($($lock:ident, $try_lock:ident;)*) => {$(
        impl<T: MallocSizeOf + ?Sized> MallocSizeOf for $lock<T> {
            const NEEDS_WALK: bool = T::NEEDS_WALK;

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                if !T::NEEDS_WALK && !ops.wants_names() {
                    return 0;
                }
                self.measure_value(ops, T::size_of_excluding_this)
            }
        }

        impl<T: ?Sized> MeasuredLock for $lock<T> {
            type Value = T;

            #[inline]
            fn measure_value<R: Reading>(
                &self,
                ops: &mut MallocSizeOfOps<R>,
                measure: impl FnOnce(&T, &mut MallocSizeOfOps<R>) -> usize,
            ) -> usize {
                match self.$try_lock() {
                    Ok(value) => held::<Self, T, R>(value, ops, measure),
                    Err(TryLockError::Poisoned(value)) => {
                        held::<Self, T, R>(value.into_inner(), ops, measure)
                    }
                    Err(TryLockError::WouldBlock) => ops.skip::<Self>(SkipReason::Locked),
                }
            }
        }
    )*};
}
lock!(Mutex, try_lock; RwLock, try_read;);

/// Measures the value behind a lock. The guard is dropped before a panic continues, so that the panic does not poison
/// the lock.
fn held<Lock: ?Sized, T: ?Sized, R: Reading>(
    guard: impl Deref<Target = T>,
    ops: &mut MallocSizeOfOps<R>,
    measure: impl FnOnce(&T, &mut MallocSizeOfOps<R>) -> usize,
) -> usize {
    let measured = catch_unwind(AssertUnwindSafe(|| measure(&guard, ops)));
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

// A value of these types is a few words in place, except on systems where std boxes it.
plain!([] Once, [] OnceState, [] Condvar, [] Barrier, [] BarrierWaitResult, [] WaitTimeoutResult);
