//! `parking_lot`: exact; the locks are tried, never waited for.

use parking_lot::{Condvar, FairMutex, Mutex, Once, OnceState, ReentrantMutex, RwLock};

use crate::impls::plain::plain;
use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;
use crate::skipped::SkipReason;

plain!([] Condvar, [] Once, [] OnceState);

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
                    Some(value) => value.size_of_excluding_this(ops),
                    None => ops.skip::<Self>(SkipReason::Locked),
                }
            }
        }
    )*};
}
lock!(Mutex, try_lock; FairMutex, try_lock; ReentrantMutex, try_lock; RwLock, try_read;);
