//! Runs code of the program so that its faults affect only that code: reporters, their names and destructors, hooks,
//! and functions that answer requests.
//!
//! Invariant: no panic leaves this module, not even a panic in the destructor of a panic's payload. No lock of this
//! crate is held while such code runs.

use core::any::Any;
use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReportingState {
    No,
    /// Code of a reporter runs on this thread.
    Yes,
    /// Code of a reporter runs on this thread and has tried to start a collection.
    Nested,
}

std::thread_local! {
    static REPORTING: Cell<ReportingState> = const { Cell::new(ReportingState::No) };
}

/// Runs code of the program. The error is the text of its panic.
///
/// The function must not be inlined. In release builds for x86-64, Rust 1.95 compiled a function that contained this
/// code wrongly: the landing pad read the panic from a wrong register.
#[inline(never)]
pub fn contain<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(panic_text)
}

/// Drops a value of the program. The error is the text of its destructor's panic.
pub(crate) fn discard<T>(value: T) -> Result<(), String> {
    contain(|| drop(value))
}

/// The outcome of a reporter's code.
pub(crate) struct ContainedResult<T> {
    /// The result of the code; the error is the text of its panic.
    pub(crate) result: Result<T, String>,
    /// Whether the code called `collect_reports`.
    pub(crate) nested: bool,
}

/// Runs code of a reporter as [`contain`] does. During the call, this thread refuses to collect reports.
pub(crate) fn as_reporter<T>(code: impl FnOnce() -> T) -> ContainedResult<T> {
    let before = REPORTING.replace(ReportingState::Yes);
    let result = contain(code);
    let nested = REPORTING.replace(before) == ReportingState::Nested;
    ContainedResult { result, nested }
}

/// Whether code of a reporter runs on this thread.
pub(crate) fn is_reporting() -> bool {
    REPORTING.get() != ReportingState::No
}

/// Whether code of a reporter runs on this thread. A collection calls this function at its start. So the function also
/// records that the code has tried to collect.
pub(crate) fn is_nested() -> bool {
    if REPORTING.get() == ReportingState::No {
        return false;
    }
    REPORTING.set(ReportingState::Nested);
    true
}

#[allow(clippy::mem_forget, reason = "leaks a payload whose destructor panics repeatedly")]
fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a text".to_owned()
    };
    // The payload belongs to the program, so its destructor may panic too.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(second);
    }
    text
}
