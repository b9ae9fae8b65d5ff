//! A fork while other threads hold our locks: the forking thread takes them all first, so that the child
//! finds every table whole.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use crate::engine::ENGINE;
use crate::modules::seen;
use crate::thread::Inside;
use crate::{internal_alloc, process, stack, thread};

static STARTED: AtomicBool = AtomicBool::new(false);
/// Whether this process came from a fork of one that records.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Registers the handlers, once. As early as can be: then they run last before the fork, and first after it.
pub(crate) fn start() {
    if !STARTED.swap(true, Ordering::AcqRel) {
        // SAFETY: the handlers are functions of this library, which is never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
}

/// Whether this process came from a fork of one that records, also by a raw call that runs no handlers.
pub(crate) fn is_child() -> bool {
    FORKED.load(Ordering::Relaxed) || process::is_another_than_started()
}

fn for_each_lock(each: &mut dyn FnMut(&crate::lock::Lock)) {
    ENGINE.for_each_lock(each);
    seen::for_each_lock(each);
    internal_alloc::for_each_lock(each);
}

/// Whether this is a signal's handler that has interrupted this thread where it holds a lock: it would wait for itself.
pub(crate) fn would_wait_for_itself() -> bool {
    thread::slot().guard.is_set() && thread::slot().locks.get() != 0
}

/// Whether all locks can be had within some tenths of a second: none is held by this thread, which would
/// wait for itself.
pub(crate) fn locks_are_free() -> bool {
    let mut free = true;
    for_each_lock(&mut |lock| {
        for _ in 0..20 {
            if lock.try_hold().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        free = false;
    });
    free
}

extern "C" fn before() {
    if thread::slot().guard.is_set() {
        // A signal's handler forks in the middle of an allocation: this thread may hold one of the locks, and
        // would wait for itself.
        return;
    }
    // A handler that interrupts this finds the thread inside, and takes none.
    let _inside = Inside::deeper();
    for_each_lock(&mut |lock| lock.acquire());
    // From here to the end of the fork this thread passes through the locks: other handlers allocate.
    thread::slot().forking.set(true);
}

extern "C" fn in_parent() {
    let _inside = Inside::deeper();
    if !thread::slot().forking.replace(false) {
        return;
    }
    for_each_lock(&mut |lock| lock.release());
}

extern "C" fn in_child() {
    let _inside = Inside::deeper();
    for_each_lock(&mut |lock| lock.free_in_child());
    thread::slot().locks.set(0);
    // A thread that was writing a dump is not here.
    ENGINE.dumping.free_in_child();
    // Nor is one that collected reports.
    ENGINE.runs.after_fork_in_child();
    stack::after_fork_in_child();
    thread::forget_other_threads();
    thread::slot().forking.set(false);
    FORKED.store(true, Ordering::Relaxed);
}
