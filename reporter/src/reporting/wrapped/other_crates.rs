//! Locks and cells of `once_cell`, `parking_lot` and `tokio`, like the types of std.

#[cfg(any(feature = "parking_lot012", feature = "tokio1"))]
use memory_report::SkipReason;

use super::wrapped;
use crate::reporting::MemoryReporter;

#[cfg(feature = "once_cell1")]
wrapped!(
    [T: MemoryReporter] once_cell::unsync::OnceCell<T>, of T: |this, out| this.get().collect_reports(out);
    [T: MemoryReporter] once_cell::sync::OnceCell<T>, of T: |this, out| this.get().collect_reports(out);
    [T: MemoryReporter, F: FnOnce() -> T] once_cell::unsync::Lazy<T, F>, of T: |this, out| {
        Self::get(this).collect_reports(out);
    };
    [T: MemoryReporter, F: FnOnce() -> T] once_cell::sync::Lazy<T, F>, of T: |this, out| {
        Self::get(this).collect_reports(out);
    };
);

// A panic does not poison these locks.
#[cfg(feature = "parking_lot012")]
wrapped!(
    [T: MemoryReporter + ?Sized] parking_lot::Mutex<T>, of T: |this, out| match this.try_lock() {
        Some(value) => value.collect_reports(out),
        None => out.skip::<Self>(SkipReason::Locked),
    };
    [T: MemoryReporter + ?Sized] parking_lot::FairMutex<T>, of T: |this, out| match this.try_lock() {
        Some(value) => value.collect_reports(out),
        None => out.skip::<Self>(SkipReason::Locked),
    };
    [T: MemoryReporter + ?Sized] parking_lot::ReentrantMutex<T>, of T: |this, out| match this.try_lock() {
        Some(value) => value.collect_reports(out),
        None => out.skip::<Self>(SkipReason::Locked),
    };
    [T: MemoryReporter + ?Sized] parking_lot::RwLock<T>, of T: |this, out| match this.try_read() {
        Some(value) => value.collect_reports(out),
        None => out.skip::<Self>(SkipReason::Locked),
    };
);

#[cfg(feature = "tokio1")]
wrapped!(
    [T: MemoryReporter] tokio::sync::OnceCell<T>, of T: |this, out| this.get().collect_reports(out);
    [T: MemoryReporter + ?Sized] tokio::sync::Mutex<T>, of T: |this, out| match this.try_lock() {
        Ok(value) => value.collect_reports(out),
        Err(_) => out.skip::<Self>(SkipReason::Locked),
    };
    [T: MemoryReporter + ?Sized] tokio::sync::RwLock<T>, of T: |this, out| match this.try_read() {
        Ok(value) => value.collect_reports(out),
        Err(_) => out.skip::<Self>(SkipReason::Locked),
    };
);
