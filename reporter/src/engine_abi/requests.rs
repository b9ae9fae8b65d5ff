//! What a request of the socket asks of an engine: dumps, and recording for a while.

use core::ffi::{CStr, c_int};
use core::time::Duration;
use std::io;

use super::engine;

/// Whether an engine waits for [`start_tracking`], or records since then.
pub(crate) fn may_record() -> bool {
    engine().is_some_and(|engine| (engine.may_record)())
}

/// Lets an engine that waits record: a sample with this mean distance in bytes, or with 0 every block.
pub(crate) fn start_tracking(mean: u64) -> io::Result<()> {
    let engine = engine().ok_or(io::ErrorKind::Unsupported)?;
    done((engine.start_tracking)(mean))
}

/// Lets the engine wait again.
pub(crate) fn stop_tracking() {
    if let Some(engine) = engine() {
        (engine.stop_tracking)();
    }
}

/// Lets the engine write a dump without running reporters.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub(crate) fn dump(path: &CStr) -> io::Result<()> {
    let engine = engine().ok_or(io::ErrorKind::Unsupported)?;
    // SAFETY: the maker of the table guarantees that the function only reads a C string, which `path` is.
    done(unsafe { (engine.dump)(path.as_ptr()) })
}

fn done(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        number if number > 0 => Err(io::Error::from_raw_os_error(number)),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Lets the engine run all reporters, each with a deadline, and write a dump.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub(crate) fn report_and_dump(path: &CStr, deadline: Duration) -> io::Result<()> {
    let engine = engine().ok_or(io::ErrorKind::Unsupported)?;
    let milliseconds = u64::try_from(deadline.as_millis().max(1)).unwrap_or(u64::MAX);
    // SAFETY: the maker of the table guarantees that the function only reads a C string, which `path` is.
    done(unsafe { (engine.report_and_dump)(path.as_ptr(), milliseconds) })
}
