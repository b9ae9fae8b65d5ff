//! The engine in a process that runs already: `about-memory attach` has loaded `libdmd.so` into it.
//!
//! As with `--wait-for-track`, the engine records nothing until a session of tracking starts. An attachment is such a
//! session, without a peer. So blocks from before the attachment stay unknown, and a process can be attached to again.
//!
//! A thread of the program makes these calls, perhaps in the middle of a system call with a time limit. After a sleep
//! here, the kernel could not continue this system call correctly. So no code here sleeps.

use core::ffi::CStr;
use core::time::Duration;
use std::path::Path;

use memory_reporter::live::ListenOptions;

use crate::boundary::{dumping, engine_abi, listening, recorder};
use crate::engine::{ENGINE, EngineSetup, Phase};
use crate::options::{Mode, Options, Stacks};
use crate::recording;
use crate::system::errno::keeping_errno;
use crate::system::slot::Inside;
use crate::system::{engine_threads, error_numbers, process};

/// The options of an attachment.
#[derive(Debug)]
#[non_exhaustive]
pub struct AttachOptions<'a> {
    /// The mean distance of samples in bytes; 0 records every block. A recording always has every block.
    pub sample_bytes: u64,
    /// The absolute path of the recording; `None` for no recording.
    pub record: Option<&'a CStr>,
    /// Whether the engine records nothing until a request asks for it.
    pub waits: bool,
    /// The folder of the process's socket.
    pub folder: &'a Path,
}

impl<'a> AttachOptions<'a> {
    /// Records every block, with the socket in this folder.
    pub fn new(folder: &'a Path) -> Self {
        Self { sample_bytes: 0, record: None, waits: false, folder }
    }
}

/// The reason why an attachment fails.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttachRefusal {
    /// The engine records already, or was started with the process and does not wait for requests.
    Busy,
    /// The engine has no memory, or cannot have threads of its own.
    NoThreads,
    /// The socket cannot be made.
    Socket(String),
    /// The recording cannot be started: the system's error number.
    Recording(i32),
}

/// Starts to answer requests and, unless the options ask the engine to wait, to record. The first call starts the
/// engine.
///
/// # Errors
///
/// Returns the reason if the engine cannot start to answer requests or to record.
pub fn attach(options: &AttachOptions<'_>) -> Result<(), AttachRefusal> {
    let _inside = Inside::deeper();
    keeping_errno(|| {
        prepare()?;
        listening::start(&ListenOptions::new().folder(options.folder))
            .map_err(|error| AttachRefusal::Socket(error.to_string()))?;
        let begun = begin(options);
        if begun.is_err() {
            listening::stop();
        }
        begun
    })
}

/// Starts the engine unless an earlier attachment has started it.
fn prepare() -> Result<(), AttachRefusal> {
    if ENGINE.phase() == Phase::Undecided {
        let options = Options::new().mode(Mode::Live).wait_for_track(true);
        let options = Options { stacks: Stacks::Full, ..options };
        // SAFETY: without a first process, the function uses no variable of the environment.
        #[allow(unsafe_code, reason = "the function is unsafe for its other callers")]
        unsafe {
            process::start(None, core::ptr::null_mut());
        }
        recording::register();
        ENGINE.start(EngineSetup { options, variable: None });
        recording::start();
        recorder::is_preloaded();
        engine_threads::prepare();
        engine_abi::connect_itself();
    }
    if ENGINE.phase() != Phase::Waiting {
        return Err(AttachRefusal::Busy);
    }
    if engine_threads::are_possible() { Ok(()) } else { Err(AttachRefusal::NoThreads) }
}

fn begin(options: &AttachOptions<'_>) -> Result<(), AttachRefusal> {
    let begun = match options.record {
        _ if options.waits => 0,
        // SAFETY: a `CStr` ends in 0.
        #[allow(unsafe_code, reason = "a function for C")]
        Some(path) => unsafe { engine_abi::start_recording(path.as_ptr()) },
        None => engine_abi::start_tracking(options.sample_bytes),
    };
    match begun {
        0 => Ok(()),
        error_numbers::BUSY | dumping::NOT_RUNNING if options.record.is_none() => Err(AttachRefusal::Busy),
        error => Err(AttachRefusal::Recording(error)),
    }
}

/// Stops recording and answering requests, if an attachment or `--wait-for-track` started the engine. The engine then
/// waits for the next attachment. Returns whether it recorded or waited for requests before the call.
pub fn detach() -> bool {
    let _inside = Inside::deeper();
    keeping_errno(|| {
        let was_on = ENGINE.records() || ENGINE.phase() == Phase::Waiting;
        if was_on && ENGINE.setup().options.wait_for_track {
            engine_abi::stop_tracking();
            listening::stop();
        }
        was_on
    })
}

/// Calls a function on a thread of the engine, a tenth of a second later.
pub fn after_a_moment(body: fn()) {
    const MOMENT: Duration = Duration::from_millis(100);
    on_engine_thread(move || {
        engine_threads::wait_for(-1, 0, Some(MOMENT));
        body();
    });
}

/// Runs code on a thread of the engine. Returns false if no such thread can start.
pub fn on_engine_thread(body: impl FnOnce() + Send + 'static) -> bool {
    static NAME: &CStr = c"about-memory";
    let _inside = Inside::deeper();
    engine_threads::start(&NAME, None, Box::new(body))
}

/// Whether the engine has a record of the block that starts at this address.
pub fn is_recorded(block: *const core::ffi::c_void) -> bool {
    ENGINE.table().is_live(block.addr())
}
