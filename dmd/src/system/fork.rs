//! Handles a fork while other threads hold locks of the engine. The forking thread first takes all locks, so that
//! every table is complete in the child.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::sync::OnceLock;

use crate::system::lock::Lock;
use crate::system::process_id;
use crate::system::slot::{Inside, on_jump, slot};

/// Calls its argument with every lock, in the order in which a thread may take several of them.
type ForEachLock = fn(&mut dyn FnMut(&Lock));

/// The functions that a fork calls. The owner of the locks provides them.
#[derive(Debug)]
pub(crate) struct ForkHandlers {
    /// Calls its argument with all locks.
    pub(crate) for_each_lock: ForEachLock,
    /// Runs in the child once all locks are free.
    pub(crate) in_child: fn(),
}

static FORKING: OnceLock<&'static ForkHandlers> = OnceLock::new();
/// Whether this process is the child of a fork of a process that records.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The process in which the handlers last ran as the child of a fork.
static CHILD: AtomicU32 = AtomicU32::new(0);

/// Whether the fork handlers have prepared the process with this number. The handlers do not run for `vfork`, whose
/// child runs in its parent's memory.
pub(crate) fn is_child_of_fork(process: u32) -> bool {
    CHILD.load(Ordering::Relaxed) == process
}

/// Registers the handlers, once. Call this as early as possible: the handlers then run last before a fork, and first
/// after it.
pub(crate) fn start(forking: &'static ForkHandlers) {
    if FORKING.set(forking).is_ok() {
        on_jump(|| for_each_lock(&mut |lock| lock.release_if_ours()));
        #[cfg(unix)]
        // SAFETY: the handlers are functions of this library, and it is never unloaded.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child))
        };
    }
}

/// Whether this process is the child of a fork of a process that records, even of a raw call that runs no handlers.
pub(crate) fn is_child() -> bool {
    FORKED.load(Ordering::Relaxed) || process_id::is_another_than_started()
}

fn for_each_lock(each: &mut dyn FnMut(&Lock)) {
    if let Some(forking) = FORKING.get() {
        (forking.for_each_lock)(each);
    }
}

/// Whether this is a signal handler that interrupted its thread while the thread held a lock: the thread would wait
/// for itself.
pub(crate) fn would_wait_for_itself() -> bool {
    slot().guard.is_set() && slot().locks.get() != 0
}

/// Calls `body` with all locks held, so that every table is complete in the child of a fork that `body` makes. The
/// child must not return from `body`.
#[cfg(target_os = "linux")]
pub(crate) fn with_all_locks<T>(body: impl FnOnce() -> T) -> T {
    for_each_lock(&mut |lock| lock.acquire());
    let result = body();
    for_each_lock(&mut |lock| lock.release());
    result
}

/// Whether every lock becomes free; waits a tenth of a second for each. If so, this thread holds no lock for which it
/// would wait forever.
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
    if slot().guard.is_set() {
        // A signal handler forks in the middle of an allocation: this thread may hold one of the locks, and would wait
        // for itself.
        return;
    }
    // A handler that interrupts this code finds the guard set, and takes no lock.
    let _inside = Inside::deeper();
    for_each_lock(&mut |lock| lock.acquire());
    // Until the end of the fork, this thread ignores the locks: fork handlers of other libraries allocate.
    slot().forking.set(true);
}

extern "C" fn in_parent() {
    let _inside = Inside::deeper();
    if !slot().forking.replace(false) {
        return;
    }
    for_each_lock(&mut |lock| lock.release());
}

extern "C" fn in_child() {
    let _inside = Inside::deeper();
    for_each_lock(&mut |lock| lock.free_in_child());
    slot().locks.set(0);
    if let Some(forking) = FORKING.get() {
        (forking.in_child)();
    }
    slot().forking.set(false);
    FORKED.store(true, Ordering::Relaxed);
    CHILD.store(std::process::id(), Ordering::Relaxed);
}
