//! Answers requests in a process whose program does not link `memory-reporter`: `libdmd.so` has a copy of that crate.
//!
//! `libdmd.so` answers if `ABOUT_MEMORY` asks for it, as for programs that link the crate, and after
//! `about-memory attach`. A program that links the crate connects when it starts, after `libdmd.so`, and then answers
//! requests with its own reporters. Then the library stops answering.

#[cfg(engine = "native")]
use core::ffi::CStr;
use std::sync::{Mutex, PoisonError};

#[cfg(engine = "native")]
use memory_reporter::__private::{ThreadHost, host_threads};
use memory_reporter::live::{ListenError, ListenGuard, ListenOptions, listen_until_dropped};

#[cfg(engine = "native")]
use crate::system::engine_threads;

static LISTENING: Mutex<Option<ListenGuard>> = Mutex::new(None);

/// Lets the threads that listen and answer run as engine threads.
#[cfg(engine = "native")]
static HOST: ThreadHost = ThreadHost {
    start: |body| engine_threads::start(&NAME, None, body),
    wait: engine_threads::wait_for,
    is_here: engine_threads::is_engine_thread,
};

#[cfg(engine = "native")]
static NAME: &CStr = c"about-memory";

/// Starts to listen. The caller is inside the engine's guard, so that the engine does not record the memory of the
/// thread that listens.
pub(crate) fn start(options: &ListenOptions) -> Result<(), ListenError> {
    #[cfg(engine = "native")]
    if engine_threads::are_possible() {
        engine_threads::prepare_descriptors();
        host_threads(&HOST);
    }
    let listening = listen_until_dropped(options)?;
    *LISTENING.lock().unwrap_or_else(PoisonError::into_inner) = Some(listening);
    Ok(())
}

/// Stops answering: a program that has connected answers requests, or `about-memory detach` asks for it.
pub(crate) fn stop() {
    drop(LISTENING.lock().unwrap_or_else(PoisonError::into_inner).take());
}
