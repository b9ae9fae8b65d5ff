//! Locks: tried, never waited for. A poisoned one is read.
//!
//! Guards do not implement `MallocSizeOf`, so that a call on one means the value behind it.

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
                    Ok(value) => value.size_of_excluding_this(ops),
                    Err(TryLockError::Poisoned(value)) => {
                        value.into_inner().size_of_excluding_this(ops)
                    }
                    Err(TryLockError::WouldBlock) => ops.skip::<Self>(SkipReason::Locked),
                }
            }
        }
    )*};
}
lock!(Mutex, try_lock; RwLock, try_read;);

impl<T: MallocSizeOf> MallocSizeOf for OnceLock<T> {
    const NEEDS_WALK: bool = T::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.get().map_or(0, |value| value.size_of_excluding_this(ops))
    }
}

// A few words of the operating system each, but for systems where std has to box them.
plain!([] Once, [] OnceState, [] Condvar, [] Barrier, [] BarrierWaitResult, [] WaitTimeoutResult);
