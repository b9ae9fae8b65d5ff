//! Locks: the collection tries a lock and never waits, and reads through a poisoned lock.

use core::ops::Deref;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{Mutex, RwLock, TryLockError};

use memory_report::SkipReason;

use super::wrapped;
use crate::reporting::{MemoryReporter, Reports};

wrapped!(
    [T: MemoryReporter + ?Sized] Mutex<T>, of T: |this, out| match this.try_lock() {
        Ok(value) => held(value, out),
        Err(TryLockError::Poisoned(value)) => held(value.into_inner(), out),
        Err(TryLockError::WouldBlock) => out.skip::<Self>(SkipReason::Locked),
    };
    [T: MemoryReporter + ?Sized] RwLock<T>, of T: |this, out| match this.try_read() {
        Ok(value) => held(value, out),
        Err(TryLockError::Poisoned(value)) => held(value.into_inner(), out),
        Err(TryLockError::WouldBlock) => out.skip::<Self>(SkipReason::Locked),
    };
);

/// Runs the reporter behind a lock. A panic of the reporter must not poison the program's lock, so the panic
/// continues only after the lock is released.
fn held<T: MemoryReporter + ?Sized>(guard: impl Deref<Target = T>, out: &mut Reports) {
    let ran = catch_unwind(AssertUnwindSafe(|| guard.collect_reports(out)));
    drop(guard);
    if let Err(panic) = ran {
        resume_unwind(panic);
    }
}
