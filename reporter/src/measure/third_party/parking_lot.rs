//! `parking_lot`: exact; the walk tries the locks and never waits.

use memory_report::SkipReason;
use parking_lot::{Condvar, FairMutex, Mutex, Once, OnceState, ReentrantMutex, RwLock};

use crate::measure::impls::plain::plain;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reach::MeasuredLock;
use crate::measure::reading::Reading;

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
                    Some(value) => measure(&value, ops),
                    None => ops.skip::<Self>(SkipReason::Locked),
                }
            }
        }
    )*};
}
lock!(Mutex, try_lock; FairMutex, try_lock; ReentrantMutex, try_lock; RwLock, try_read;);
