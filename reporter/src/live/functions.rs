//! Requests that other crates and the program itself answer.

use core::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{bridge, isolation};

use super::dmd_dump;

type Answer = dyn Fn(&str, &mut dyn Write) -> io::Result<()> + Send + Sync;

struct Entry {
    request: String,
    answer: Box<Answer>,
}

static FUNCTIONS: Mutex<Vec<Arc<Entry>>> = Mutex::new(Vec::new());

/// Keeps a request answered; dropping it ends that.
#[must_use = "dropping it ends the answering; call `forever` to keep it"]
pub struct Answering(Arc<Entry>);

/// Has `answer` called when a peer asks for `request`, with the line of JSON that it sent and where the
/// answer goes. It runs on a thread of the listener, perhaps on several at once.
///
/// An error before the first byte of the answer is sent to the peer as such; a later one cuts the
/// answer short. Of several functions for one request the first one answers; `hello`, `report` and
/// `minimize` are never handed on.
pub fn answer_requests(
    request: impl Into<String>,
    answer: impl Fn(&str, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
) -> Answering {
    let entry = Arc::new(Entry { request: request.into(), answer: Box::new(answer) });
    lock().push(Arc::clone(&entry));
    Answering(entry)
}

impl Answering {
    /// Answers until the program ends.
    #[allow(clippy::mem_forget, reason = "never to end is what is asked for")]
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        lock().retain(|entry| !Arc::ptr_eq(entry, &self.0));
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Answering").field(&self.0.request).finish()
    }
}

/// No function runs while it is held.
fn lock() -> MutexGuard<'static, Vec<Arc<Entry>>> {
    FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is answered, in order and each once.
pub(super) fn names() -> Vec<String> {
    let mut names: Vec<_> = lock().iter().map(|entry| entry.request.clone()).collect();
    if bridge::is_connected() {
        names.push(dmd_dump::REQUEST.to_owned());
    }
    names.sort();
    names.dedup();
    names
}

/// Answers `request` if there is a function for it.
pub(super) fn run(request: &str, line: &str, out: &mut dyn Write) -> Option<io::Result<()>> {
    let entry = lock().iter().find(|entry| entry.request == request).cloned();
    match entry {
        Some(entry) => {
            // An error is the program's too: its text is taken here.
            let plain = |error: io::Error| io::Error::new(error.kind(), error.to_string());
            let answered = isolation::contain(|| (entry.answer)(line, out).map_err(plain));
            // It was the last to hold the function if that was removed meanwhile; the panic hook has said
            // what went wrong.
            let _ = isolation::discard(entry);
            let panicked =
                |panic: String| io::Error::other(format!("the function for {request:?} panicked: {panic}"));
            Some(answered.unwrap_or_else(|panic| Err(panicked(panic))))
        }
        None if request == dmd_dump::REQUEST && bridge::is_connected() => Some(dmd_dump::answer(out)),
        None => None,
    }
}
