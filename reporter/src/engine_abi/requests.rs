//! The work of an engine for requests on the socket: dumps, copies of the process, and recording for a limited time.

use core::ffi::{CStr, c_int, c_void};
use core::time::Duration;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::{CopyHandle, EngineTable, engine};

/// Whether an engine records, or waits for [`start_tracking`].
pub(crate) fn may_record() -> bool {
    engine().is_some_and(|engine| (engine.may_record)())
}

/// Whether an engine records.
pub(crate) fn is_running() -> bool {
    engine().is_some_and(|engine| (engine.is_running)())
}

/// Makes a waiting engine record. `mean` is the mean distance of samples in bytes; 0 records every block.
pub(crate) fn start_tracking(mean: u64) -> io::Result<()> {
    let engine = engine().ok_or(io::ErrorKind::Unsupported)?;
    done((engine.start_tracking)(mean))
}

/// Sets the peer that gets the dump if the process ends before the session. Returns whether the session now has the
/// peer. [`NO_PEER`](super::NO_PEER) removes the peer; then the function returns whether the session still had a peer.
pub(crate) fn set_session_peer(descriptor: c_int) -> bool {
    engine().is_some_and(|engine| (engine.set_session_peer)(descriptor) != 0)
}

/// Like [`start_tracking`] for every block, but also records all events into a file with this absolute path.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub(crate) fn start_recording(path: &CStr) -> io::Result<()> {
    let engine = engine().ok_or(io::ErrorKind::Unsupported)?;
    // SAFETY: the maker of the table guarantees that the function only reads a C string, which `path` is.
    done(unsafe { (engine.start_recording)(path.as_ptr()) })
}

/// Calls `body`. An engine, if there is one, does not record blocks that `body` allocates. A panic of `body`
/// continues in the caller.
#[allow(unsafe_code, reason = "lends a closure to another library")]
pub(crate) fn unrecorded<T>(body: impl FnOnce() -> T) -> T {
    struct BodyCall<T, F>(Option<F>, Option<std::thread::Result<T>>);
    unsafe extern "C" fn run<T, F: FnOnce() -> T>(context: *mut c_void) {
        // SAFETY: the maker of the table guarantees that the engine passes the context unchanged. The context points to
        // the `BodyCall` of `with`, and no other code uses this value until the engine's function returns.
        let call = unsafe { &mut *context.cast::<BodyCall<T, F>>() };
        if let Some(body) = call.0.take() {
            call.1 = Some(catch_unwind(AssertUnwindSafe(body)));
        }
    }
    fn with<T, F: FnOnce() -> T>(engine: &EngineTable, body: F) -> T {
        let mut call = BodyCall(Some(body), None);
        // SAFETY: `run` expects a pointer to this call, and the call outlives the engine's function.
        unsafe { (engine.unrecorded)((&raw mut call).cast(), run::<T, F>) };
        match (call.1, call.0) {
            (Some(Ok(value)), _) => value,
            (Some(Err(panic)), _) => resume_unwind(panic),
            // The engine has broken the contract of its table: it has not called the body.
            (None, Some(body)) => body(),
            (None, None) => unreachable!("a body that was taken has returned a result"),
        }
    }
    match engine() {
        Some(engine) => with(engine, body),
        None => body(),
    }
}

/// A copy of this process. Dropping the `LiveCopy` ends the copy.
pub(crate) struct LiveCopy {
    engine: &'static EngineTable,
    copy: CopyHandle,
}

impl LiveCopy {
    /// Makes a copy. The error is `Unsupported` if no engine records, or the system cannot copy processes.
    #[allow(unsafe_code, reason = "calls a function of another library")]
    pub(crate) fn make() -> io::Result<Self> {
        let engine = engine().ok_or(io::ErrorKind::Unsupported)?;
        let mut copy = CopyHandle { process: 0, hold: 0 };
        // SAFETY: the maker of the table guarantees that the function writes one copy, for which there is room.
        done(unsafe { (engine.copy_process)(&raw mut copy) })?;
        Ok(Self { engine, copy })
    }

    /// Makes a copy for the reader that the engine's options name. Returns the same errors as [`make`](Self::make).
    #[allow(unsafe_code, reason = "calls a function of another library")]
    pub(crate) fn keep() -> io::Result<()> {
        let engine = engine().ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: the contract of `copy_process` allows null.
        done(unsafe { (engine.copy_process)(core::ptr::null_mut()) })
    }

    /// The process number of the copy.
    pub(crate) fn process(&self) -> u32 {
        self.copy.process as u32
    }
}

impl Drop for LiveCopy {
    fn drop(&mut self) {
        (self.engine.end_copy)(self.copy);
    }
}

/// Stops recording; the engine waits again.
pub(crate) fn stop_tracking() {
    if let Some(engine) = engine() {
        (engine.stop_tracking)();
    }
}

/// Makes the engine write a dump without running reporters.
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

/// Makes the engine run all reporters, each with a deadline, and write a dump.
#[allow(unsafe_code, reason = "calls a function of another library")]
pub(crate) fn report_and_dump(path: &CStr, deadline: Duration) -> io::Result<()> {
    let engine = engine().ok_or(io::ErrorKind::Unsupported)?;
    let milliseconds = u64::try_from(deadline.as_millis().max(1)).unwrap_or(u64::MAX);
    // SAFETY: the maker of the table guarantees that the function only reads a C string, which `path` is.
    done(unsafe { (engine.report_and_dump)(path.as_ptr(), milliseconds) })
}
