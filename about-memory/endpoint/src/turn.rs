//! Whose turn it is, and work that has a deadline.
//!
//! The process has one heap, whatever the number of endpoints: one request is at work at a time, and one difference at
//! a time waits for its second profile. A turn belongs to the work and not to the request, which may give up on it.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The turn of requests at work.
pub(crate) static WORK: WorkTurn = WorkTurn::new();

/// The turn of differences.
pub(crate) static DIFFERENCE: WorkTurn = WorkTurn::new();

/// The end of a time from now on, or a year if that is too far away for the clock.
pub(crate) fn end_of(time: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let now = Instant::now();
    now.checked_add(time).unwrap_or_else(|| now + YEAR)
}

/// What one caller at a time has.
#[derive(Debug)]
pub(crate) struct WorkTurn {
    /// When the caller who has the turn expects to give it back.
    ends: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl WorkTurn {
    const fn new() -> Self {
        Self { ends: Mutex::new(None), changed: Condvar::new() }
    }

    /// Takes the turn, until about `ends`. The error is when the caller who has it expects to give it back.
    pub(crate) fn take(&'static self, ends: Instant) -> Result<WorkPermit, Instant> {
        self.take_before(Instant::now(), ends)
    }

    /// As [`take`](Self::take), but waits until `last`.
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

/// A turn, until dropped.
#[derive(Debug)]
pub(crate) struct WorkPermit(&'static WorkTurn);

impl Drop for WorkPermit {
    fn drop(&mut self) {
        *self.0.lock() = None;
        self.0.changed.notify_one();
    }
}

/// Why work has no result.
#[derive(Debug)]
pub(crate) enum NoResult {
    /// It did not end in time, and keeps its turn until it ends.
    Late,
    Panicked,
    NoThread(std::io::Error),
}

/// Runs `work` on a thread of its own, and waits for its result until then.
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
        // The client may ask again as soon as it has the answer.
        drop(turn);
        // Nobody waits if the result is late.
        let _ = send.send(result);
    };
    thread::Builder::new().name("memory-endpoint".to_owned()).spawn(all).map_err(NoResult::NoThread)?;
    receive.recv_timeout(end.saturating_duration_since(Instant::now())).map_err(|error| match error {
        RecvTimeoutError::Timeout => NoResult::Late,
        RecvTimeoutError::Disconnected => NoResult::Panicked,
    })
}
