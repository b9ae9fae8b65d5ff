//! Answers requests in a process whose program does not link `memory-reporter`: `libdmd.so` has a copy of it.
//!
//! `ABOUT_MEMORY` asks for it, as it asks programs that link the crate. Such a program connects when it starts, after
//! `libdmd.so`, and then answers with its own reporters: so the library stops.

use std::sync::{Mutex, PoisonError};

use memory_reporter::live::{ListenOptions, Listening, listen_until_dropped};

static LISTENING: Mutex<Option<Listening>> = Mutex::new(None);

/// Listens. The caller is inside the engine's guard, so that the engine does not record the thread's memory.
pub(crate) fn start() {
    // Without a socket nobody finds the process: the variable asks for no more than an attempt.
    let listening = listen_until_dropped(&ListenOptions::new()).ok();
    *LISTENING.lock().unwrap_or_else(PoisonError::into_inner) = listening;
}

/// Leaves the answering to a program that has connected.
pub(crate) fn leave_to_program() {
    drop(LISTENING.lock().unwrap_or_else(PoisonError::into_inner).take());
}
