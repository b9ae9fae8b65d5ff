//! Dumps of the engine in this copy of the library: when they may be written, and with which reports.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;

use crate::boundary::reporter_hosts;
use crate::dump;
use crate::engine::{ENGINE, EngineSetup};
use crate::options::Options;
use crate::recording;
#[cfg(engine = "native")]
use crate::system::errno::keeping_errno;
use crate::system::path_bytes::path_of;
use crate::system::process::{self, DumpOutput};
#[cfg(target_os = "linux")]
use crate::system::session_peer;
use crate::system::slot::{Inside, slot};
use crate::system::{confined, error_numbers, fork, internal_alloc, log, own_stack, signals};
use crate::tables::runs::{EnteredRun, RunNumber};
use crate::tables::stack;

/// The result of the C functions if DMD does not record.
pub(crate) const NOT_RUNNING: c_int = -1;

/// The number of dumps started so far.
static DUMPS: AtomicUsize = AtomicUsize::new(0);

/// Notes that this copy of the library is preloaded and so has the hooks.
pub(crate) fn hooks_are_here() {
    ENGINE.set_preloaded();
}

/// Whether this copy of the library is preloaded and so has the hooks.
pub(crate) fn are_hooks_here() -> bool {
    ENGINE.is_preloaded()
}

pub(crate) unsafe extern "C" fn local_dump(path: *const c_char) -> c_int {
    if !ENGINE.records() {
        return NOT_RUNNING;
    }
    if fork::would_wait_for_itself() {
        return error_numbers::BUSY;
    }
    let Some(_dumping) = ENGINE.dumping.try_hold() else { return error_numbers::BUSY };
    // SAFETY: `path` is null or ends in 0, as the caller guarantees.
    unsafe { write(path) }
}

/// Writes a dump with reports, unless the caller is a signal handler that has interrupted an allocation.
///
/// # Safety
///
/// The path is null or ends in 0.
pub(crate) unsafe fn local_report_and_dump(path: *const c_char, deadline: Option<Duration>) -> c_int {
    // Reporters allocate. In a signal handler that has interrupted an allocation, they could wait forever for a lock
    // that this allocation holds.
    if slot().guard.is_set() || (ENGINE.is_preloaded() && stack::is_interrupted_here()) {
        return error_numbers::BUSY;
    }
    // SAFETY: `path` is null or ends in 0: the caller of this function guarantees that.
    unsafe { report_and_write(path, deadline) }
}

/// # Safety
///
/// The path is null or ends in 0.
unsafe fn report_and_write(path: *const c_char, deadline: Option<Duration>) -> c_int {
    if !ENGINE.records() {
        return NOT_RUNNING;
    }
    let Some(dumping) = ENGINE.dumping.try_hold() else { return error_numbers::BUSY };
    let run = ENGINE.runs.next();
    ENGINE.runs.begin_dump(run);
    ENGINE.begin_reports();
    {
        let _entered = EnteredRun::new(run);
        reporter_hosts::run_reporters(deadline);
    }
    if !ENGINE.runs.end_reporters(run) {
        dumping.leave();
        return error_numbers::CANCELED;
    }
    // SAFETY: `path` is null or ends in 0: the caller of this function guarantees that.
    unsafe { write(path) }
}

/// # Safety
///
/// The path is null or ends in 0.
unsafe fn write(path: *const c_char) -> c_int {
    write_to(|| {
        if path.is_null() {
            return process::output(&ENGINE.setup().options);
        }
        // SAFETY: the pointer is not null, so it is a string that ends in 0: each caller of `write` guarantees that.
        let path = path_of(unsafe { CStr::from_ptr(path) }.to_bytes());
        DumpOutput::At(process::absolute(&path))
    })
}

fn write_to(output: impl FnOnce() -> DumpOutput) -> c_int {
    // The engine does not record allocations of the dump.
    let _inside = Inside::deeper();
    if !internal_alloc::is_ready() {
        log::say(format_args!("no dump: no memory is left"));
        return error_numbers::NO_MEMORY;
    }
    signals::held(|| own_stack::run(|| write_here(&output())))
}

fn write_here(output: &DumpOutput) -> c_int {
    let number = DUMPS.fetch_add(1, Ordering::Relaxed) + 1;
    let written = dump::write(output, number);
    ENGINE.runs.seize(0);
    ENGINE.begin_reports();
    match written {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(error_numbers::IO),
    }
}

pub(crate) unsafe extern "C" fn local_reset(options: *const c_char) -> c_int {
    if !ENGINE.records() {
        return NOT_RUNNING;
    }
    // SAFETY: the caller passes a string that ends in 0.
    let words = unsafe { CStr::from_ptr(options) }.to_bytes();
    // The options keep references to the words, so the words are never freed.
    let words: &'static [u8] = {
        let _inside = Inside::deeper();
        Box::leak(words.to_vec().into_boxed_slice())
    };
    match Options::parse(words) {
        Ok(options) => {
            ENGINE.reset(EngineSetup { options, variable: Some(words) });
            0
        }
        Err(bad) => {
            log::say(format_args!("{bad}"));
            error_numbers::INVALID
        }
    }
}

/// The number of times that the process tries to write its last dump while another dump is being written. All tries
/// together take some seconds.
const TRIES: usize = 500;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);
/// The time limit for the reporters at the end of the process: a reporter that waits forever for another thread must
/// not keep the process alive.
const DEADLINE: Duration = Duration::from_secs(5);

/// Whether the process writes a dump or a recording when it ends: options or a session of tracking ask for it.
pub(crate) fn leaves_something() -> bool {
    #[cfg(target_os = "linux")]
    let is_tracked = session_peer::is_there();
    #[cfg(not(target_os = "linux"))]
    let is_tracked = false;
    let options = ENGINE.setup().options;
    ENGINE.records()
        && (options.dump_at_exit || options.copy_to.is_some() || recording::is_on() || is_tracked)
}

/// Writes the dump at the end of the process, if the options or a session of tracking ask for one. Then ends the
/// recording.
pub(crate) fn process_ends() {
    let options = ENGINE.setup().options;
    if !leaves_something() || confined::is_confined() {
        return;
    }
    if slot().guard.is_set() {
        // A signal handler has interrupted an allocation and ends the process. The allocation never continues: if it
        // holds a lock, a dump would wait forever for this lock.
        if !fork::locks_are_free() {
            return log::say_failure(format_args!(
                "no dump: the process ends in the middle of an allocation"
            ));
        }
        slot().guard.clear();
    }
    // The process is copied before the reporters run, since reporters allocate. The copy is made on a separate stack
    // with signals held: the thread may be on a small stack, or have a pending cancellation.
    signals::held(|| {
        own_stack::run(|| {
            process::note_resident_peak();
            if options.children || !fork::is_child() {
                ENGINE.copy_at_end();
            }
        });
    });
    if options.dump_at_exit && (options.children || !fork::is_child()) {
        let run = slot().run.get();
        if run != 0 {
            // A reporter ends the process: its call does not return, and later reporters do not run. So the dump
            // contains only the reports that the run has made so far.
            last_dump(|| write_partial(run));
        } else {
            // SAFETY: `report_and_write` takes null.
            last_dump(|| unsafe { report_and_write(core::ptr::null(), Some(DEADLINE)) });
        }
    }
    #[cfg(target_os = "linux")]
    dump_to_peer();
    // The recording ends after the dump, so that it contains the allocations of the dump's reporters.
    recording::process_ends();
}

/// Sends the dump to the peer of a session of tracking, and writes the events of the recording, before the process
/// becomes another program: afterwards, the data would be lost. A dump of `--dump-at-exit` is not written.
#[cfg(engine = "native")]
pub fn program_is_replaced() {
    // If this is a signal handler that has interrupted the engine, this thread may hold locks of the engine. If a
    // filter of system calls is installed, a system call may end the process.
    if !leaves_something() || slot().guard.is_set() || confined::any_noted() {
        return;
    }
    keeping_errno(|| {
        dump_to_peer();
        recording::write_now();
    });
}

/// Sends the dump to the peer of a session of tracking, if the peer waits for it.
#[cfg(target_os = "linux")]
fn dump_to_peer() {
    let Some(peer) = session_peer::take() else { return };
    peer.set_patience();
    let mut peer = Some(peer);
    last_dump(|| {
        let Some(_dumping) = ENGINE.dumping.try_hold() else { return error_numbers::BUSY };
        peer.take().map_or(0, |peer| write_to(|| DumpOutput::Peer(peer)))
    });
}

/// Calls `write` again while another thread writes a dump or collects reports, at most [`TRIES`] times.
fn last_dump(mut write: impl FnMut() -> c_int) {
    for _ in 0..TRIES {
        if write() != error_numbers::BUSY {
            return;
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
    log::say_anyway(format_args!("no dump: another thread is still writing one"));
}

/// Writes a dump with the reports that a run has made so far.
fn write_partial(run: RunNumber) -> c_int {
    let _dumping = if ENGINE.runs.take_over(run) {
        None
    } else {
        let Some(dumping) = ENGINE.dumping.try_hold() else { return error_numbers::BUSY };
        Some(dumping)
    };
    if ENGINE.runs.is_owner(run) {
        log::say(format_args!("a memory reporter ends the process: the reports are not complete"));
    } else {
        // The run did not make the current marks, so the dump must not contain them.
        ENGINE.begin_reports();
        log::say(format_args!("a memory reporter ends the process: there are no reports"));
    }
    // SAFETY: `write` takes null.
    unsafe { write(core::ptr::null()) }
}
