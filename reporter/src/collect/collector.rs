//! The thread that runs reporters if the collection has a deadline. The thread ends with the collection. If the
//! collection has stopped waiting for a job, the thread ends after that job.

use core::mem;
use core::time::Duration;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::platform;

/// A job of the thread; `G` is its result.
pub(super) type CollectorJob<G> = Box<dyn FnOnce() -> G + Send>;

pub(super) struct CollectorThread<G>(Arc<JobSlot<G>>);

struct JobSlot<G> {
    state: Mutex<JobState<G>>,
    changed: Condvar,
}

enum JobState<G> {
    Waiting,
    Given(CollectorJob<G>),
    Running,
    Done(G),
    /// The request to end the thread.
    Ended,
}

impl<G: Send + 'static> CollectorThread<G> {
    pub(super) fn start() -> io::Result<Self> {
        let shared = Arc::new(JobSlot { state: Mutex::new(JobState::Waiting), changed: Condvar::new() });
        let thread_s = Arc::clone(&shared);
        platform::spawn("memory-reporter", Box::new(move || thread_s.work()))?;
        Ok(Self(shared))
    }

    /// Runs a job and returns its result. `None` if the job takes longer than `deadline`; the thread then accepts no
    /// other job.
    pub(super) fn run(&self, job: CollectorJob<G>, deadline: Duration) -> Option<G> {
        let mut state = self.0.lock();
        *state = JobState::Given(job);
        self.0.changed.notify_all();
        let not_done = |state: &mut JobState<G>| !matches!(state, JobState::Done(_));
        let waited = self.0.changed.wait_timeout_while(state, deadline, not_done);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let before = mem::replace(&mut *state, JobState::Waiting);
        if let JobState::Done(result) = before {
            return Some(result);
        }
        *state = JobState::Ended;
        // Dropping a job may run code of the program, so the lock is released first.
        drop(state);
        drop(before);
        None
    }
}

impl<G> JobSlot<G> {
    fn work(&self) {
        let mut state = self.lock();
        loop {
            match mem::replace(&mut *state, JobState::Running) {
                JobState::Given(job) => {
                    drop(state);
                    let result = job();
                    state = self.lock();
                    if matches!(*state, JobState::Ended) {
                        // The result is dropped without the lock, since its destructor may run code of the program.
                        drop(state);
                        return;
                    }
                    *state = JobState::Done(result);
                    self.changed.notify_all();
                }
                JobState::Ended => return,
                other => {
                    *state = other;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, JobState<G>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<G> Drop for CollectorThread<G> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let before = mem::replace(&mut *state, JobState::Ended);
        self.0.changed.notify_all();
        drop(state);
        drop(before);
    }
}
