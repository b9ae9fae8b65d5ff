//! Answers requests in a process whose program does not link `memory-reporter`: `libdmd.so` has a copy of it.
//!
//! `ABOUT_MEMORY` asks for it, as it asks programs that link the crate. Such a program connects when it starts, after
//! `libdmd.so`, and then answers with its own reporters: so the library stops.

#[cfg(engine = "native")]
use core::ffi::CStr;
use std::sync::{Mutex, PoisonError};

#[cfg(engine = "native")]
use memory_reporter::__private::{ThreadHost, host_threads};
use memory_reporter::live::{ListenGuard, ListenOptions, listen_until_dropped};

#[cfg(engine = "native")]
use crate::system::helpers;

static LISTENING: Mutex<Option<ListenGuard>> = Mutex::new(None);

/// Helpers, for the threads that listen and answer.
#[cfg(engine = "native")]
static HOST: ThreadHost = ThreadHost {
    start: |body| helpers::start(&NAME, None, body),
    wait: helpers::wait_for,
    is_here: helpers::is_helper,
};

#[cfg(engine = "native")]
static NAME: &CStr = c"about-memory";

/// Listens. The caller is inside the engine's guard, so that the engine does not record the thread's memory.
pub(crate) fn start() {
    #[cfg(engine = "native")]
    if helpers::are_possible() {
        helpers::prepare_descriptors();
        host_threads(&HOST);
    }
    // Without a socket nobody finds the process: the variable asks for no more than an attempt.
    let listening = listen_until_dropped(&ListenOptions::new()).ok();
    *LISTENING.lock().unwrap_or_else(PoisonError::into_inner) = listening;
}

/// Leaves the answering to a program that has connected.
pub(crate) fn leave_to_program() {
    drop(LISTENING.lock().unwrap_or_else(PoisonError::into_inner).take());
}
