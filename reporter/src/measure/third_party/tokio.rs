//! `tokio::sync`: locks and cells are exact: the walk tries them and never waits. Channels and barriers are opaque.

use memory_report::SkipReason;
use tokio::sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};

use crate::measure::impls::opaque::opaque;
use crate::measure::impls::plain::plain;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reach::MeasuredLock;
use crate::measure::reading::Reading;

plain!([] Notify, [] Semaphore);
opaque!(
    [] Barrier,
    [T] broadcast::Sender<T>,
    [T] broadcast::Receiver<T>,
    [T] mpsc::Sender<T>,
    [T] mpsc::WeakSender<T>,
    [T] mpsc::Receiver<T>,
    [T] mpsc::UnboundedSender<T>,
    [T] mpsc::WeakUnboundedSender<T>,
    [T] mpsc::UnboundedReceiver<T>,
    [T] oneshot::Sender<T>,
    [T] oneshot::Receiver<T>,
    [T] watch::Sender<T>,
    [T] watch::Receiver<T>,
);

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
                    Ok(value) => measure(&value, ops),
                    Err(_) => ops.skip::<Self>(SkipReason::Locked),
                }
            }
        }
    )*};
}
lock!(Mutex, try_lock; RwLock, try_read;);

impl<T: MallocSizeOf> MallocSizeOf for OnceCell<T> {
    const NEEDS_WALK: bool = T::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.get().map_or(0, |value| value.size_of_excluding_this(ops))
    }
}
