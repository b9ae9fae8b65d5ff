//! Events: each change of a state, with a number.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::id::{JobId, SnapshotId};

/// The subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a front end shows each of them")]
pub enum EventSubject {
    /// A snapshot.
    Snapshot(SnapshotId),
    /// A computation.
    Job(JobId),
    /// A list that a front end keeps beside the session. The kind of the event is the list's name.
    List,
}

/// A change of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionEvent {
    /// The number of the event. The first event of a session has the number 1, and each event the next number.
    pub seq: u64,
    /// The subject that changed.
    pub subject: EventSubject,
    /// The kind of the computation, such as `census`; `snapshot` for a snapshot; the name of a list.
    pub kind: &'static str,
    /// The new state, such as `reading`; `removed` for a snapshot that the session dropped; `changed` for a list.
    pub state: &'static str,
    /// The reason of a failure. Empty without a failure.
    pub message: String,
}

/// The latest events of a session.
#[derive(Debug)]
pub struct EventLog {
    log: Mutex<EventQueue>,
    added: Condvar,
    kept: usize,
}

#[derive(Debug)]
struct EventQueue {
    last: u64,
    events: VecDeque<SessionEvent>,
    is_closed: bool,
}

impl EventLog {
    pub(super) fn new(kept: usize) -> Self {
        let log = EventQueue { last: 0, events: VecDeque::new(), is_closed: false };
        Self { log: Mutex::new(log), added: Condvar::new(), kept }
    }

    fn log(&self) -> MutexGuard<'_, EventQueue> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, subject: EventSubject, kind: &'static str, state: &'static str, message: &str) {
        let mut log = self.log();
        log.last += 1;
        let seq = log.last;
        log.events.push_back(SessionEvent { seq, subject, kind, state, message: message.to_owned() });
        if log.events.len() > self.kept {
            log.events.pop_front();
        }
        drop(log);
        self.added.notify_all();
    }

    /// The number of the latest event; 0 before the first event.
    pub fn last(&self) -> u64 {
        self.log().last
    }

    /// Returns the events after the event with the number `seq`, the oldest first. `None` if the session has dropped
    /// some of them, or has not reached `seq` yet. The caller must then read the whole state.
    pub fn since(&self, seq: u64) -> Option<Vec<SessionEvent>> {
        since(&self.log(), seq)
    }

    /// Like [`since`](Self::since), but waits up to `timeout` for the first event.
    pub fn wait(&self, seq: u64, timeout: Duration) -> Option<Vec<SessionEvent>> {
        let until = Instant::now() + timeout;
        let mut log = self.log();
        while log.last == seq && !log.is_closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            log = self.added.wait_timeout(log, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        since(&log, seq)
    }

    /// Ends all waiting, now and in the future.
    pub fn close(&self) {
        self.log().is_closed = true;
        self.added.notify_all();
    }
}

fn since(log: &EventQueue, seq: u64) -> Option<Vec<SessionEvent>> {
    let first = log.events.front().map_or(log.last + 1, |event| event.seq);
    if seq > log.last || seq + 1 < first {
        return None;
    }
    let skipped = usize::try_from(seq + 1 - first).unwrap_or(usize::MAX);
    Some(log.events.iter().skip(skipped).cloned().collect())
}
