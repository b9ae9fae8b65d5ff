//! A lock for use inside an allocation: a waiting thread sleeps. The lock never allocates and never panics, and the
//! child of a fork can free it.
//!
//! While a thread forks, it holds every lock (see `fork`). Its own calls ignore the locks: fork handlers of other
//! libraries may allocate.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use crate::system::slot::slot;
use crate::system::waiting;

const FREE: u32 = 0;
/// Other threads wait for the lock. The remaining bits identify the thread that holds it.
const AWAITED: u32 = 1 << 31;

/// The maximum sleep of a waiting thread. The jump of a signal handler may stop a thread that has freed the lock but
/// has not woken the next thread.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

pub(crate) struct Lock(AtomicU32);

/// Holds the lock, and frees it when dropped.
pub(crate) struct LockGuard<'a>(Option<&'a Lock>);

/// A number that identifies this thread: a part of its slot's address. Two threads have the same number only if their
/// slots are a multiple of 128 GiB apart.
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

    /// Takes the lock, unless another thread holds it.
    pub(crate) fn try_hold(&self) -> Option<LockGuard<'_>> {
        if slot().forking.get() {
            return Some(LockGuard(None));
        }
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
                // Set the bit, since other threads may also wait.
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

    /// Frees the lock in the child of a fork. The only thread of the child holds the lock, so no thread waits for it.
    pub(crate) fn free_in_child(&self) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// Updates the number of locks that this thread holds, for signal handlers. For an instant the number may be one too
/// high, but never too low.
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
    /// Drops the guard without freeing the lock, because another thread has taken the lock over.
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

/// Access to the value. The lock is held until this is dropped.
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
