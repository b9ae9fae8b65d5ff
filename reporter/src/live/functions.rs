//! Functions of other crates and of the program that answer requests.

use core::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use crate::engine_abi;
use crate::process_lock::ProcessLock;
use crate::reporting::isolation;
use crate::small_sort::sort_by;

use super::{dmd_dump, log, tracking};

/// The name of the request for a copy of the process.
pub(super) const COPY_REQUEST: &str = "dmd-copy";

type RequestFunction = dyn Fn(&str, &mut dyn Write) -> io::Result<()> + Send + Sync;

struct AnsweredRequest {
    request: String,
    answer: Box<RequestFunction>,
}

/// The lock must not be held while a function runs.
static FUNCTIONS: ProcessLock<Vec<Arc<AnsweredRequest>>> = ProcessLock::new(Vec::new());

/// Keeps a function registered; dropping it removes the function.
#[must_use = "dropping this value removes the function; to keep the function, call `forever`"]
pub struct AnswerGuard(Arc<AnsweredRequest>);

/// Calls `answer` when a peer sends `request`, with the peer's line of JSON and a writer for the answer. `answer`
/// runs on a thread of the listener, perhaps on several threads at the same time.
///
/// If `answer` fails before it writes the first byte, the peer gets the error. If it fails later, the answer ends
/// early. If several functions are registered for one request, the first one answers. The requests `hello`, `report`,
/// `minimize` and `amounts` never reach a function. With DMD, `dmd-track`, `dmd-log` and `dmd-copy` do not either.
pub fn answer_requests(
    request: impl Into<String>,
    answer: impl Fn(&str, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
) -> AnswerGuard {
    let entry = Arc::new(AnsweredRequest { request: request.into(), answer: Box::new(answer) });
    FUNCTIONS.lock().push(Arc::clone(&entry));
    AnswerGuard(entry)
}

impl AnswerGuard {
    /// Keeps the function until the program ends.
    #[allow(clippy::mem_forget, reason = "the caller requests that it never ends")]
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        FUNCTIONS.lock().retain(|entry| !Arc::ptr_eq(entry, &self.0));
    }
}

impl fmt::Debug for AnswerGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnswerGuard").field(&self.0.request).finish()
    }
}

/// The names of the requests that registered functions or DMD answer, sorted, each once.
pub(super) fn names() -> Vec<String> {
    let mut names: Vec<_> = FUNCTIONS.lock().iter().map(|entry| entry.request.clone()).collect();
    if engine_abi::is_connected() {
        names.push(dmd_dump::REQUEST.to_owned());
        names.push(COPY_REQUEST.to_owned());
        if engine_abi::may_record() {
            names.push(tracking::REQUEST.to_owned());
            names.push(log::REQUEST.to_owned());
        }
    }
    sort_by(&mut names, Ord::cmp);
    names.dedup();
    names
}

/// Answers `request` by a registered function, or by a dump of DMD; `None` if neither is possible.
pub(super) fn run(request: &str, line: &str, out: &mut dyn Write) -> Option<io::Result<()>> {
    let entry = FUNCTIONS.lock().iter().find(|entry| entry.request == request).cloned();
    match entry {
        Some(entry) => {
            // The error may contain a value of the program, so only its kind and its text leave this closure.
            let plain = |error: io::Error| io::Error::new(error.kind(), error.to_string());
            let answered = isolation::contain(|| (entry.answer)(line, out).map_err(plain));
            // If the program has removed the function meanwhile, this call drops the function. The panic hook has
            // already reported a panic.
            let _ = isolation::discard(entry);
            let panicked =
                |panic: String| io::Error::other(format!("the function for {request:?} panicked: {panic}"));
            Some(answered.unwrap_or_else(|panic| Err(panicked(panic))))
        }
        None if request == dmd_dump::REQUEST && engine_abi::is_connected() => Some(dmd_dump::answer(out)),
        None => None,
    }
}
