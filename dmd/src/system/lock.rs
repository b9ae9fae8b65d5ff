//! A lock for use inside an allocation: a waiting thread sleeps. The lock never
//! allocates, never panics, and the child of a fork can free it.
//!
//! While a thread forks it holds every lock (see `fork`) and its own calls ignore them: other libraries' fork
//! handlers may allocate.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use crate::system::slot::slot;
use crate::system::waiting;

const FREE: u32 = 0;
/// Other threads wait for the lock. The other bits name the thread that holds it.
const AWAITED: u32 = 1 << 31;

/// The jump of a signal handler may leave a thread that has freed the lock and not woken the next one.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

pub(crate) struct Lock(AtomicU32);

/// Frees the lock when dropped.
pub(crate) struct LockGuard<'a>(Option<&'a Lock>);

/// A name of this thread: a part of its slot's address. Threads have the same name only if their slots are 128 GiB apart.
#[inline(always)]
fn this_thread() -> u32 {
    const LINE_BITS: u32 = 6;
    ((core::ptr::from_ref(slot()).addr() >> LINE_BITS) as u32 & !AWAITED) | 1
}

impl Lock {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    #[inline]
    pub(crate) fn hold(&self) -> LockGuard<'_> {
        if slot().forking.get() {
            return LockGuard(None);
        }
        self.acquire();
        LockGuard(Some(self))
    }

    /// Takes the lock, unless somebody has it.
    pub(crate) fn try_hold(&self) -> Option<LockGuard<'_>> {
        count(1);
        if self.exchange(FREE, this_thread()) {
            return Some(LockGuard(Some(self)));
        }
        count(-1);
        None
    }

    #[inline]
    pub(crate) fn acquire(&self) {
        count(1);
        if !self.exchange(FREE, this_thread()) {
            self.wait();
        }
    }

    #[inline(always)]
    fn exchange(&self, from: u32, to: u32) -> bool {
        self.0.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        loop {
            let now = self.0.load(Ordering::Relaxed);
            if now == FREE {
                // Others may wait, too.
                if self.exchange(FREE, this_thread() | AWAITED) {
                    return;
                }
            } else if now & AWAITED != 0 || self.exchange(now, now | AWAITED) {
                waiting::wait(&self.0, now | AWAITED, Some(LONGEST_SLEEP));
            }
        }
    }

    #[inline]
    pub(crate) fn release(&self) {
        if self.0.swap(FREE, Ordering::Release) & AWAITED != 0 {
            self.wake();
        }
        count(-1);
    }

    #[cold]
    fn wake(&self) {
        waiting::wake_one(&self.0);
    }

    /// Frees the lock if this thread holds it.
    pub(crate) fn release_if_ours(&self) {
        if self.0.load(Ordering::Relaxed) & !AWAITED == this_thread() {
            self.release();
        }
    }

    /// For the child of a fork, whose only thread holds the lock: no thread waits for it.
    pub(crate) fn free_in_child(&self) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// Tells signal handlers how many locks this thread holds: for an instant one too many, never too few.
#[inline]
fn count(change: i16) {
    let locks = &slot().locks;
    locks.set(locks.get().wrapping_add_signed(change));
}

impl Drop for LockGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(lock) = self.0 {
            lock.release();
        }
    }
}

impl LockGuard<'_> {
    /// Leaves the lock to another thread that has taken it over.
    pub(crate) fn leave(mut self) {
        self.0 = None;
        count(-1);
    }
}

/// A value behind a [`Lock`].
pub(crate) struct LockedValue<T> {
    lock: Lock,
    value: UnsafeCell<T>,
}

// SAFETY: only the thread that holds the lock reaches the value.
unsafe impl<T: Send> Sync for LockedValue<T> {}

/// The value, until dropped.
pub(crate) struct LockUse<'a, T> {
    value: &'a UnsafeCell<T>,
    _held: LockGuard<'a>,
}

impl<T> LockedValue<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { lock: Lock::new(), value: UnsafeCell::new(value) }
    }

    pub(crate) fn lock(&self) -> &Lock {
        &self.lock
    }

    pub(crate) fn hold(&self) -> LockUse<'_, T> {
        LockUse { value: &self.value, _held: self.lock.hold() }
    }
}

impl<T> Deref for LockUse<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `_held` holds the lock as long as `self` lives.
        unsafe { &*self.value.get() }
    }
}

impl<T> DerefMut for LockUse<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: `_held` holds the lock as long as `self` lives, and `self` is borrowed mutably.
        unsafe { &mut *self.value.get() }
    }
}
