//! The functions for programs, and for persons who call them in a debugger.

use core::ffi::{c_char, c_int, c_void};
use std::io;
use std::path::Path;

#[cfg(engine = "native")]
use crate::boundary::ending;
use crate::boundary::{dumping, recorder};
use crate::error::DumpError;
use crate::system::error_numbers;

/// Runs all memory reporters of the process. Then writes all live blocks, and which of them the reporters reported.
///
/// Reports from before the call do not count. The file is JSON of version 5, gzipped if its name ends in `.gz`.
///
/// # Errors
///
/// Returns an error if DMD records nothing, if the file cannot be written, if another dump is being written, or if the
/// caller is a signal handler that interrupted an allocation.
pub fn report_and_dump(path: impl AsRef<Path>) -> Result<(), DumpError> {
    let recorder = recorder::any();
    // SAFETY: `with_path` passes a string that ends in 0.
    with_path(path.as_ref(), |path| unsafe { recorder.report_and_dump(path) })
}

/// Writes all live blocks, and which of them were reported since the last dump. Runs no reporters.
///
/// # Errors
///
/// Returns an error if DMD records nothing, if the file cannot be written, if another dump is being written, or if the
/// caller is a signal handler that interrupted this library while it held a lock.
pub fn dump(path: impl AsRef<Path>) -> Result<(), DumpError> {
    let recorder = recorder::any();
    // SAFETY: `with_path` passes a string that ends in 0.
    with_path(path.as_ref(), |path| unsafe { recorder.dump(path) })
}

fn with_path(path: &Path, call: impl FnOnce(*const c_char) -> c_int) -> Result<(), DumpError> {
    let error = |source| DumpError::Write { path: path.to_owned(), source };
    // The text is on the stack: if it were allocated here, the dump would contain its block.
    let mut text = [0; 4097];
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.len() >= text.len() || bytes.contains(&0) {
        return Err(error(io::Error::from_raw_os_error(error_numbers::INVALID)));
    }
    text[..bytes.len()].copy_from_slice(bytes);
    match call(text.as_ptr().cast()) {
        0 => Ok(()),
        dumping::NOT_RUNNING => Err(DumpError::NotRunning),
        number => Err(error(io::Error::from_raw_os_error(number))),
    }
}

/// Whether DMD records the blocks of this process.
pub fn is_running() -> bool {
    recorder::running_one().is_some()
}

/// Marks the block that starts at this address as reported. Returns its usable bytes, or 0 if no block starts there.
///
/// Use it for blocks that no Rust value owns, such as blocks of a library in C. A reporter that measures values marks
/// their blocks by itself.
pub fn report<T: ?Sized>(block: *const T) -> usize {
    recorder::running_one().map_or(0, |recorder| recorder.report(block.cast(), false))
}

/// Like [`report`], for a block that the program counts when it allocates the block: the mark stays until the block is
/// freed.
pub fn report_on_alloc<T: ?Sized>(block: *const T) -> usize {
    recorder::running_one().map_or(0, |recorder| recorder.report(block.cast(), true))
}

/// Removes all marks, except marks made at allocation.
pub fn clear_reports() {
    if let Some(recorder) = recorder::running_one() {
        recorder.clear_reports();
    }
}

/// For tests: forgets all blocks, and continues with `options`, in the syntax of `$DMD`.
///
/// # Safety
///
/// No other thread may allocate or free during the call: the thread would use tables that this function clears.
///
/// # Errors
///
/// Returns an error if DMD records nothing, or if `options` contains a bad word.
#[doc(hidden)]
pub unsafe fn reset(options: &str) -> Result<(), DumpError> {
    let recorder = recorder::running_one().ok_or(DumpError::NotRunning)?;
    // SAFETY: `with_path` passes a string that ends in 0.
    with_path(Path::new(options), |options| unsafe { recorder.reset(options) })
}

/// C: [`report_and_dump`]. If the path is null, the file is the same as for the dump at the end of the process.
/// Returns 0, the system's error number, or -1 if DMD records nothing.
///
/// # Safety
///
/// The path is null or ends in 0.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "Firefox's name")]
pub(crate) unsafe extern "C" fn DMDReportAndDump(path: *const c_char) -> c_int {
    // SAFETY: the C program passes null or a string that ends in 0, as `dmd.h` requires.
    unsafe { recorder::any().report_and_dump(path) }
}

/// C: [`dump`], with the path and the result as for [`DMDReportAndDump`].
///
/// # Safety
///
/// The path is null or ends in 0.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "Firefox's name")]
pub(crate) unsafe extern "C" fn DMDDump(path: *const c_char) -> c_int {
    // SAFETY: the C program passes null or a string that ends in 0, as `dmd.h` requires.
    unsafe { recorder::any().dump(path) }
}

/// C: whether DMD records the blocks of this process.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "Firefox's name")]
pub(crate) extern "C" fn DMDIsRunning() -> c_int {
    c_int::from(is_running())
}

/// C: [`report`].
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "Firefox's name")]
pub(crate) extern "C" fn DMDReport(block: *const c_void) -> usize {
    report(block)
}

/// C: [`report_on_alloc`].
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "Firefox's name")]
pub(crate) extern "C" fn DMDReportOnAlloc(block: *const c_void) -> usize {
    report_on_alloc(block)
}

/// C: [`clear_reports`].
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "Firefox's name")]
pub(crate) extern "C" fn DMDClearReports() {
    clear_reports();
}

/// C, for tests: forgets all blocks, and continues with other options. Returns 0, `EINVAL`, or -1 if DMD records nothing.
///
/// # Safety
///
/// The options end in 0, and no other thread allocates during the call.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "Firefox's name")]
pub(crate) unsafe extern "C" fn DMDReset(options: *const c_char) -> c_int {
    // SAFETY: the caller of `DMDReset` passes a string that ends in 0, as `DMDReset` requires.
    unsafe { recorder::any().reset(options) }
}

/// References all functions for C. [`process_ends`] references this static, so that the linker of a program with the
/// wrapper keeps the functions for a debugger.
static FOR_C: ForC = ForC {
    dump: [DMDReportAndDump, DMDDump, DMDReset],
    report: [DMDReport, DMDReportOnAlloc],
    clear: DMDClearReports,
    is_running: DMDIsRunning,
};

#[allow(dead_code, reason = "keeps the functions in the program")]
struct ForC {
    dump: [unsafe extern "C" fn(*const c_char) -> c_int; 3],
    report: [extern "C" fn(*const c_void) -> usize; 2],
    clear: extern "C" fn(),
    is_running: extern "C" fn() -> c_int,
}

/// Writes the dump and the recording at the end of the process.
pub(crate) extern "C" fn process_ends() {
    core::hint::black_box(&FOR_C);
    #[cfg(engine = "native")]
    ending::while_the_process_ends(dumping::process_ends);
    #[cfg(engine = "portable")]
    dumping::process_ends();
}
