//! Threads and wakers: std keeps their data behind pointers that it does not show.

use std::thread;

use crate::measure::impls::opaque::opaque;
use crate::measure::impls::plain::plain;

opaque!(
    [T] thread::JoinHandle<T>,
    [T] thread::ScopedJoinHandle<'_, T>,
    [] thread::Thread,
    [] thread::Builder,
    [] core::task::Waker,
);
plain!([] thread::ThreadId, [] thread::AccessError, [T: 'static] thread::LocalKey<T>);
