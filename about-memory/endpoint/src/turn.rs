//! Whose turn it is, and work that has a deadline.
//!
//! The process has one heap, whatever the number of endpoints: one request is at work at a time, and one difference at
//! a time waits for its second profile. A turn belongs to the work and not to the request, which may give up on it.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The turn of requests at work.
pub(crate) static WORK: Turn = Turn::new();

/// The turn of differences.
pub(crate) static DIFFERENCE: Turn = Turn::new();

/// The end of a time from now on, or a year if that is too far away for the clock.
pub(crate) fn end_of(time: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let now = Instant::now();
    now.checked_add(time).unwrap_or_else(|| now + YEAR)
}

/// What one caller at a time has.
#[derive(Debug)]
pub(crate) struct Turn {
    is_taken: Mutex<bool>,
    changed: Condvar,
}

impl Turn {
    const fn new() -> Self {
        Self { is_taken: Mutex::new(false), changed: Condvar::new() }
    }

    /// `None` if somebody else has the turn.
    pub(crate) fn take(&'static self) -> Option<Taken> {
        self.take_before(Instant::now())
    }

    /// As [`take`](Self::take), but waits until then.
    pub(crate) fn take_before(&'static self, end: Instant) -> Option<Taken> {
        let left = end.saturating_duration_since(Instant::now());
        let waited = self.changed.wait_timeout_while(self.lock(), left, |is_taken| *is_taken);
        let (mut is_taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *is_taken {
            return None;
        }
        *is_taken = true;
        Some(Taken(self))
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn, until dropped.
#[derive(Debug)]
pub(crate) struct Taken(&'static Turn);

impl Drop for Taken {
    fn drop(&mut self) {
        *self.0.lock() = false;
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
    turn: Taken,
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
