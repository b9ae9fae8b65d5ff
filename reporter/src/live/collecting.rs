//! Collects garbage on request.

use std::io;

use crate::reporting::amounts;

use super::functions::{AnswerGuard, answer_requests};
use super::protocol::{MinimizeAnswer, VERSION};
use super::turns::CallerTurn;

/// The name of the request.
const REQUEST: &str = "collect";

/// Registers a function that collects the program's garbage on request, like the button GC of about:memory. The
/// program must [listen](crate::listen). `collect` should run each of the program's collectors to the end of a cycle.
/// `collect` runs on a thread of the listener, for one peer at a time; meanwhile other peers get an error.
///
/// ```
/// use std::sync::Mutex;
///
/// use memory_reporter::live::answer_collections;
/// use memory_reporter::{pressure::AllocatorPurge, watching::WatchedCollector};
///
/// let collector = Mutex::new(WatchedCollector::new(AllocatorPurge));
/// answer_collections(move || collector.lock().unwrap().collect("API")).forever();
/// ```
pub fn answer_collections(collect: impl Fn() + Send + Sync + 'static) -> AnswerGuard {
    let turn = CallerTurn::new();
    answer_requests(REQUEST, move |_, out| {
        let Some(_alone) = turn.try_take() else {
            return Err(io::Error::other("garbage is still being collected; try again later"));
        };
        let resident_before = amounts::resident();
        collect();
        let collected = MinimizeAnswer { version: VERSION, resident_before, resident: amounts::resident() };
        out.write_all(collected.to_line().as_bytes())
    })
}
