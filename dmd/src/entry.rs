//! What a program, or somebody at a debugger, calls.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::engine::{ENGINE, Phase, Setup};
use crate::error::DumpError;
use crate::options::Options;
use crate::process::Output;
use crate::runs::{Entered, Run};
use crate::thread::Inside;
use crate::{
    comment, confined, door, fork, internal_alloc, own_stack, process, programs, signals, stack, thread,
};

/// What the C functions give if nothing is recorded.
const NOT_RUNNING: c_int = -1;

/// Dumps written so far.
static DUMPS: AtomicUsize = AtomicUsize::new(0);

/// Runs all memory reporters of the process, and writes which blocks they reported.
///
/// Reports made before do not count. The file is JSON of version 5, gzipped if its name ends in `.gz`.
///
/// # Errors
///
/// If nothing is recorded, or the file cannot be written; while another dump is written; and in a signal's handler that
/// has interrupted an allocation.
pub fn report_and_dump(path: impl AsRef<Path>) -> Result<(), DumpError> {
    let door = door::any();
    // SAFETY: a string that ends in 0.
    with_path(path.as_ref(), |path| unsafe { door.report_and_dump(path) })
}

/// Writes which blocks there are, and which were reported since the last dump, without running reporters.
///
/// # Errors
///
/// If nothing is recorded, or the file cannot be written; while another dump is written; and in a signal's handler that
/// has interrupted this library where it holds a lock.
pub fn dump(path: impl AsRef<Path>) -> Result<(), DumpError> {
    let door = door::any();
    // SAFETY: a string that ends in 0.
    with_path(path.as_ref(), |path| unsafe { door.dump(path) })
}

fn with_path(path: &Path, call: impl FnOnce(*const c_char) -> c_int) -> Result<(), DumpError> {
    let error = |source| DumpError::Write { path: path.to_owned(), source };
    // On the stack: what is allocated here would be in the dump.
    let mut text = [0; 4097];
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= text.len() || bytes.contains(&0) {
        return Err(error(io::Error::from_raw_os_error(libc::EINVAL)));
    }
    text[..bytes.len()].copy_from_slice(bytes);
    match call(text.as_ptr().cast()) {
        0 => Ok(()),
        NOT_RUNNING => Err(DumpError::NotRunning),
        number => Err(error(io::Error::from_raw_os_error(number))),
    }
}

/// Whether blocks of this process are recorded.
pub fn is_running() -> bool {
    door::running_one().is_some()
}

/// Marks the block that starts here as reported, and gives its usable bytes; 0 if it is no block.
///
/// For foreign memory; values measured by a reporter are marked without it.
pub fn report<T: ?Sized>(block: *const T) -> usize {
    door::running_one().map_or(0, |door| door.report(block.cast(), false))
}

/// The same, of a block that is counted when it is allocated: the mark stays until it is freed.
pub fn report_on_alloc<T: ?Sized>(block: *const T) -> usize {
    door::running_one().map_or(0, |door| door.report(block.cast(), true))
}

/// Takes all marks away but those made on allocation.
pub fn clear_reports() {
    if let Some(door) = door::running_one() {
        door.clear_reports();
    }
}

/// For tests: forgets everything, and goes on as `options` say, which are words as in `$DMD`. No other
/// thread may allocate meanwhile.
///
/// # Errors
///
/// If nothing is recorded, or a word is not understood.
#[doc(hidden)]
pub fn reset(options: &str) -> Result<(), DumpError> {
    let door = door::running_one().ok_or(DumpError::NotRunning)?;
    // SAFETY: a string that ends in 0.
    with_path(Path::new(options), |options| unsafe { door.reset(options) })
}

/// C: [`report_and_dump`]; a null path is the one of the dump at the end of the process. Returns 0, the
/// system's error number, or -1 if nothing is recorded.
///
/// # Safety
///
/// The path is null or ends in 0.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "Firefox's name")]
pub(crate) unsafe extern "C" fn DMDReportAndDump(path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { door::any().report_and_dump(path) }
}

/// C: [`dump`], otherwise as [`DMDReportAndDump`].
///
/// # Safety
///
/// The path is null or ends in 0.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "Firefox's name")]
pub(crate) unsafe extern "C" fn DMDDump(path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { door::any().dump(path) }
}

/// C: whether blocks of this process are recorded.
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

/// C, for tests: forgets everything, and goes on with other options. Returns 0, or `EINVAL`.
///
/// # Safety
///
/// The options end in 0, and no other thread allocates meanwhile.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "Firefox's name")]
pub(crate) unsafe extern "C" fn DMDReset(options: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { door::any().reset(options) }
}

/// Of all functions for C. What runs at the end of the process refers to it, so that the linker of a program
/// with the wrapper keeps them for a debugger.
static FOR_C: ForC = ForC {
    dump: [DMDReportAndDump, DMDDump, DMDReset],
    report: [DMDReport, DMDReportOnAlloc],
    clear: DMDClearReports,
    is_running: DMDIsRunning,
};

#[allow(dead_code, reason = "there to be referred to")]
struct ForC {
    dump: [unsafe extern "C" fn(*const c_char) -> c_int; 3],
    report: [extern "C" fn(*const c_void) -> usize; 2],
    clear: extern "C" fn(),
    is_running: extern "C" fn() -> c_int,
}

pub(crate) unsafe extern "C" fn local_dump(path: *const c_char) -> c_int {
    if ENGINE.phase() != Phase::On {
        return NOT_RUNNING;
    }
    if fork::would_wait_for_itself() {
        return libc::EBUSY;
    }
    let Some(_dumping) = ENGINE.dumping.try_hold() else { return libc::EBUSY };
    // SAFETY: the caller's promise.
    unsafe { write(path) }
}

pub(crate) unsafe extern "C" fn local_report_and_dump(path: *const c_char) -> c_int {
    // Reporters allocate, for which the allocator that a signal's handler has interrupted may wait for ever.
    if thread::slot().guard.is_set() || (door::hooks_are_here() && stack::is_interrupted_here()) {
        return libc::EBUSY;
    }
    // SAFETY: the caller's promise.
    unsafe { report_and_write(path, None) }
}

/// # Safety
///
/// The path is null or ends in 0.
pub(crate) unsafe fn report_and_write(path: *const c_char, deadline: Option<Duration>) -> c_int {
    if ENGINE.phase() != Phase::On {
        return NOT_RUNNING;
    }
    let Some(dumping) = ENGINE.dumping.try_hold() else { return libc::EBUSY };
    let run = ENGINE.runs.next();
    ENGINE.runs.begin_dump(run);
    ENGINE.begin_reports();
    {
        let _entered = Entered::new(run);
        programs::run_reporters(deadline);
    }
    if !ENGINE.runs.end_reporters(run) {
        dumping.leave();
        return libc::ECANCELED;
    }
    // SAFETY: the caller's promise.
    unsafe { write(path) }
}

/// # Safety
///
/// The path is null or ends in 0.
unsafe fn write(path: *const c_char) -> c_int {
    // What is allocated for the dump goes by.
    let _inside = Inside::deeper();
    if !internal_alloc::is_ready() {
        comment::say(format_args!("no dump: no memory is left"));
        return libc::ENOMEM;
    }
    signals::held(|| {
        own_stack::run(|| {
            // SAFETY: the caller's promise.
            unsafe { write_here(path) }
        })
    })
}

/// # Safety
///
/// The path is null or ends in 0.
unsafe fn write_here(path: *const c_char) -> c_int {
    let output = if path.is_null() {
        process::output()
    } else {
        // SAFETY: the caller's promise.
        let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
        Output::At(process::absolute(path))
    };
    let number = DUMPS.fetch_add(1, Ordering::Relaxed) + 1;
    let written = crate::dump::write(&output, number);
    ENGINE.runs.seize(0);
    ENGINE.begin_reports();
    match written {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    }
}

pub(crate) unsafe extern "C" fn local_reset(options: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let words = unsafe { CStr::from_ptr(options) }.to_bytes();
    // The options keep pointing into it.
    let words: &'static [u8] = {
        let _inside = Inside::deeper();
        Box::leak(words.to_vec().into_boxed_slice())
    };
    match Options::parse(words) {
        Ok(options) => {
            ENGINE.reset(Setup { options, variable: Some(words) });
            0
        }
        Err(bad) => {
            comment::say(format_args!("{bad}"));
            libc::EINVAL
        }
    }
}

/// How long the end of the process waits for another dump: some seconds.
const TRIES: usize = 500;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);
/// A reporter that waits for a thread which is not coming must not keep the process.
const DEADLINE: Duration = Duration::from_secs(5);

/// At the end of the process.
pub(crate) extern "C" fn process_ends() {
    core::hint::black_box(&FOR_C);
    if ENGINE.phase() != Phase::On || !ENGINE.setup().options.dump_at_exit || confined::is_confined() {
        return;
    }
    if thread::slot().guard.is_set() {
        // A signal's handler has interrupted an allocation and ends the process: nobody goes back there.
        if !fork::locks_are_free() {
            return comment::say(format_args!("no dump: the process ends in the middle of an allocation"));
        }
        thread::slot().guard.clear();
    }
    let options = ENGINE.setup().options;
    if options.children || !fork::is_child() {
        let run = thread::slot().run.get();
        if run != 0 {
            // In a reporter. There is nothing to wait for: it does not return, and those behind it do not run.
            return last_dump(|| write_partial(run));
        }
        // SAFETY: null is allowed.
        last_dump(|| unsafe { report_and_write(core::ptr::null(), Some(DEADLINE)) });
    }
}

/// Tries until no other thread writes a dump, or collects reports.
fn last_dump(mut write: impl FnMut() -> c_int) {
    for _ in 0..TRIES {
        if write() != libc::EBUSY {
            return;
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
    comment::say_anyway(format_args!("no dump: another thread is in the middle of one"));
}

/// Writes a dump with the reports that a run has made so far.
fn write_partial(run: Run) -> c_int {
    let _dumping = if ENGINE.runs.take_over(run) {
        None
    } else {
        let Some(dumping) = ENGINE.dumping.try_hold() else { return libc::EBUSY };
        Some(dumping)
    };
    if ENGINE.runs.is_owner(run) {
        comment::say(format_args!("a memory reporter ends the process: the reports are not complete"));
    } else {
        // Marks of others, or of none.
        ENGINE.begin_reports();
        comment::say(format_args!("a memory reporter ends the process: there are no reports"));
    }
    // SAFETY: null is allowed.
    unsafe { write(core::ptr::null()) }
}
