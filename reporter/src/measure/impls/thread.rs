//! Threads and wakers: std gives no access to the data behind their pointers.

use std::thread;

use crate::measure::impls::opaque::opaque;
use crate::measure::impls::plain::plain;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

opaque!(
    [T] thread::JoinHandle<T>,
    [T] thread::ScopedJoinHandle<'_, T>,
    [] thread::Thread,
    [] thread::Builder,
    [] core::task::Waker,
);
plain!([] thread::ThreadId, [] thread::AccessError);

/// No type implements this trait, so that a report of a `thread_local!` does not compile: its size would always be 0.
pub trait ValueOfAllThreads {}

impl<T: 'static> MallocSizeOf for thread::LocalKey<T>
where
    // The compiler shows this line: each thread has a value; report it by `register_local`, or use a `static Mutex`.
    Self: ValueOfAllThreads,
{
    fn size_of_excluding_this<R: Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
        0
    }
}
