//! Turns of requests, and work with a deadline.
//!
//! The process has one heap, whatever the number of endpoints. So one request runs at a time, and one difference at a
//! time waits for its second profile. A turn belongs to the work, which may run longer than its request waits.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The turn that a request needs while it runs.
pub(crate) static WORK: WorkTurn = WorkTurn::new();

/// The turn that a difference needs until it has its second profile.
pub(crate) static DIFFERENCE: WorkTurn = WorkTurn::new();

/// The instant after a time span; one year from now if the clock cannot represent the instant.
pub(crate) fn end_of(time: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let now = Instant::now();
    now.checked_add(time).unwrap_or_else(|| now + YEAR)
}

/// A turn that one caller at a time can take.
#[derive(Debug)]
pub(crate) struct WorkTurn {
    /// The instant at which the current owner expects to return the turn; `None` if the turn is free.
    ends: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl WorkTurn {
    const fn new() -> Self {
        Self { ends: Mutex::new(None), changed: Condvar::new() }
    }

    /// Takes the turn, until about `ends`. The error is the instant at which the current owner expects to return the
    /// turn.
    pub(crate) fn take(&'static self, ends: Instant) -> Result<WorkPermit, Instant> {
        self.take_before(Instant::now(), ends)
    }

    /// Waits for the turn until `last`, and takes it; see [`take`](Self::take).
    pub(crate) fn take_before(&'static self, last: Instant, ends: Instant) -> Result<WorkPermit, Instant> {
        let left = last.saturating_duration_since(Instant::now());
        let waited = self.changed.wait_timeout_while(self.lock(), left, |taken| taken.is_some());
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match *taken {
            Some(ends) => Err(ends),
            None => {
                *taken = Some(ends);
                Ok(WorkPermit(self))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A taken turn. Dropping it returns the turn.
#[derive(Debug)]
pub(crate) struct WorkPermit(&'static WorkTurn);

impl Drop for WorkPermit {
    fn drop(&mut self) {
        *self.0.lock() = None;
        self.0.changed.notify_one();
    }
}

/// The reason why work has no result.
#[derive(Debug)]
pub(crate) enum NoResult {
    /// The work did not end in time. It keeps its turn until it ends.
    Late,
    Panicked,
    NoThread(std::io::Error),
}

/// Runs `work` on a thread of its own, and waits for its result until `end`.
pub(crate) fn run_before<T: Send + 'static>(
    end: Instant,
    turn: WorkPermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoResult> {
    let (send, receive) = mpsc::sync_channel(1);
    let all = move || {
        let send = send;
        let turn = turn;
        let result = work();
        // Return the turn first: the client may send its next request as soon as it has the answer.
        drop(turn);
        // If the result is late, the receiver is gone.
        let _ = send.send(result);
    };
    thread::Builder::new().name("memory-endpoint".to_owned()).spawn(all).map_err(NoResult::NoThread)?;
    receive.recv_timeout(end.saturating_duration_since(Instant::now())).map_err(|error| match error {
        RecvTimeoutError::Timeout => NoResult::Late,
        RecvTimeoutError::Disconnected => NoResult::Panicked,
    })
}
