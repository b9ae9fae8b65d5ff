//! Cells, and values that are initialized later.

use core::cell::{LazyCell, OnceCell, RefCell};
use std::sync::{LazyLock, OnceLock};

use memory_report::SkipReason;

use super::wrapped;
use crate::reporting::MemoryReporter;

wrapped!(
    // A mutably borrowed cell is skipped.
    [T: MemoryReporter + ?Sized] RefCell<T>, of T: |this, out| match this.try_borrow() {
        Ok(value) => value.collect_reports(out),
        Err(_) => out.skip::<Self>(SkipReason::Borrowed),
    };
    // A cell without a value has no reports.
    [T: MemoryReporter] OnceCell<T>, of T: |this, out| this.get().collect_reports(out);
    [T: MemoryReporter] OnceLock<T>, of T: |this, out| this.get().collect_reports(out);
);

// If std does not show whether a `LazyCell` or `LazyLock` has a value, the collection warns about it.
#[cfg(lazy_get)]
#[allow(clippy::incompatible_msrv, reason = "compiled only if the build script has found the function")]
mod lazy {
    use super::*;

    wrapped!(
        [T: MemoryReporter, F] LazyCell<T, F>, of T: |this, out| Self::get(this).collect_reports(out);
        [T: MemoryReporter, F] LazyLock<T, F>, of T: |this, out| Self::get(this).collect_reports(out);
    );
}
#[cfg(not(lazy_get))]
wrapped!(
    [T: MemoryReporter, F] LazyCell<T, F>, of T: |_this, out| {
        out.unavailable(core::any::type_name::<Self>(), "before Rust 1.94 std does not show whether it has a value");
    };
    [T: MemoryReporter, F] LazyLock<T, F>, of T: |_this, out| {
        out.unavailable(core::any::type_name::<Self>(), "before Rust 1.94 std does not show whether it has a value");
    };
);
