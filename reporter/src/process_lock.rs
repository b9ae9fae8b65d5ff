//! Locks that are free in the child process of a fork. Before a thread forks, it waits until no other thread holds
//! such a lock. So all data are consistent in the child, and no lock is held by a thread that does not exist there.
//!
//! Invariant: no code of the program runs while a thread holds such a lock, so the wait is short.

use core::cell::Cell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use crate::platform;

/// The longest wait of a fork for locks, and of a lock for forks. After this time, the fork continues even if a thread
/// still holds a lock. This happens only in a deadlock: another library's fork handler has locked the allocator on the
/// forking thread, and the holder waits for the allocator.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_micros(50);

/// The number of threads that hold a lock or are about to take one.
static HOLDERS: AtomicUsize = AtomicUsize::new(0);
/// The number of forks in progress, each on its own thread.
static FORKS: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    /// The number of locks that this thread holds. A fork counts as a lock, so that the forking thread never waits
    /// for itself.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// A `Mutex` that is free in the child process of a fork. A panic does not poison it, since data under it stay
/// consistent.
#[derive(Default)]
pub(crate) struct ProcessLock<T>(Mutex<T>);

impl<T> ProcessLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> ProcessGuard<'_, T> {
        let holder = LockHolder::new();
        let data = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ProcessGuard { data, lock: self, _holder: holder }
    }

    /// Returns `None` if another thread holds the lock.
    #[cfg(feature = "live")]
    pub(crate) fn try_lock(&self) -> Option<ProcessGuard<'_, T>> {
        let holder = LockHolder::new();
        let data = match self.0.try_lock() {
            Ok(data) => data,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return None,
        };
        Some(ProcessGuard { data, lock: self, _holder: holder })
    }
}

impl<T: fmt::Debug> fmt::Debug for ProcessLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Holds a [`ProcessLock`] until dropped.
pub(crate) struct ProcessGuard<'a, T> {
    /// Dropped first: the thread stays a holder until the lock is free.
    data: MutexGuard<'a, T>,
    lock: &'a ProcessLock<T>,
    _holder: LockHolder,
}

impl<T> Deref for ProcessGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

impl<T> DerefMut for ProcessGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.data
    }
}

/// Counts this thread as a holder. The thread holds a lock, or is about to take one.
struct LockHolder {
    one_thread: core::marker::PhantomData<*const ()>,
}

impl LockHolder {
    fn new() -> Self {
        let held = HELD.get();
        if held == 0 {
            register_handlers();
            HOLDERS.fetch_add(1, Ordering::SeqCst);
            if FORKS.load(Ordering::SeqCst) > 0 {
                wait_for_forks();
            }
        }
        HELD.set(held + 1);
        Self { one_thread: core::marker::PhantomData }
    }
}

impl Drop for LockHolder {
    fn drop(&mut self) {
        let held = HELD.get() - 1;
        HELD.set(held);
        if held == 0 {
            HOLDERS.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Waits until no fork is in progress. Meanwhile the thread does not count as a holder. The wait is limited, since a
/// fork handler of the program may wait for a lock of the program that this thread holds.
#[cold]
fn wait_for_forks() {
    let until = Instant::now() + LONGEST_WAIT;
    while FORKS.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        HOLDERS.fetch_sub(1, Ordering::SeqCst);
        nap(STEP);
        HOLDERS.fetch_add(1, Ordering::SeqCst);
    }
}

/// Sleeps. `about-memory attach` may run this code on a thread that it stopped in a timed system call. After
/// `thread::sleep`, that call would fail with EINTR. After a timed wait for a condition, the call continues.
fn nap(time: Duration) {
    let unused = Mutex::new(());
    let held = unused.lock().unwrap_or_else(PoisonError::into_inner);
    drop(Condvar::new().wait_timeout(held, time));
}

fn register_handlers() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.load(Ordering::Relaxed) && !REGISTERED.swap(true, Ordering::Relaxed) {
        platform::at_fork(before_fork, in_parent, in_child);
    }
}

extern "C" fn before_fork() {
    FORKS.fetch_add(1, Ordering::SeqCst);
    // A signal handler may fork while this thread holds a lock.
    let own = usize::from(HELD.get() > 0);
    HELD.set(HELD.get() + 1);
    let until = Instant::now() + LONGEST_WAIT;
    while HOLDERS.load(Ordering::SeqCst) > own && Instant::now() < until {
        thread::sleep(STEP);
    }
}

extern "C" fn in_parent() {
    HELD.set(HELD.get() - 1);
    FORKS.fetch_sub(1, Ordering::SeqCst);
}

/// Resets the counts: the child process has only this thread.
extern "C" fn in_child() {
    HELD.set(HELD.get() - 1);
    HOLDERS.store(usize::from(HELD.get() > 0), Ordering::SeqCst);
    FORKS.store(0, Ordering::SeqCst);
}

/// Wakes threads that wait until data under a [`ProcessLock`] change.
pub(crate) struct ChangeSignal {
    count: AtomicU64,
    /// A thread holds this lock directly before and after its sleep. In the child process of a fork, a thread that does
    /// not exist there may hold it. So a thread that finds the lock held sleeps without it.
    sleeping: Mutex<()>,
    woken: Condvar,
}

/// The number of changes up to some moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeCount(u64);

/// The longest sleep before a thread reads the data again: `notify` may miss a thread that is about to sleep.
const NAP: Duration = Duration::from_millis(10);
const SHORT_NAP: Duration = Duration::from_millis(1);

impl ChangeSignal {
    pub(crate) const fn new() -> Self {
        Self { count: AtomicU64::new(0), sleeping: Mutex::new(()), woken: Condvar::new() }
    }

    /// Call this before reading the data.
    pub(crate) fn count(&self) -> ChangeCount {
        ChangeCount(self.count.load(Ordering::SeqCst))
    }

    pub(crate) fn notify(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.woken.notify_all();
    }

    /// Releases the lock, waits for a change after `seen`, and takes the lock again. It may also return without a
    /// change.
    pub(crate) fn wait<'a, T>(
        &self,
        guard: ProcessGuard<'a, T>,
        seen: ChangeCount,
        at_most: Duration,
    ) -> ProcessGuard<'a, T> {
        let lock = guard.lock;
        drop(guard);
        match self.sleeping.try_lock() {
            Ok(sleeping) if self.count() == seen => {
                drop(self.woken.wait_timeout(sleeping, at_most.min(NAP)));
            }
            Ok(_) => {}
            Err(_) => thread::sleep(at_most.min(SHORT_NAP)),
        }
        lock.lock()
    }
}

impl Default for ChangeSignal {
    fn default() -> Self {
        Self::new()
    }
}
