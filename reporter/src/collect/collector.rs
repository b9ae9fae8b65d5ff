//! The thread that runs reporters if there is a deadline. It ends with the collection, or with its job after the
//! collection gave up on it.

use core::mem;
use core::time::Duration;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::platform;

/// What the thread runs; `G` is its result.
pub(super) type Job<G> = Box<dyn FnOnce() -> G + Send>;

pub(super) struct Collector<G>(Arc<Shared<G>>);

struct Shared<G> {
    state: Mutex<State<G>>,
    changed: Condvar,
}

enum State<G> {
    Waiting,
    Given(Job<G>),
    Running,
    Done(G),
    /// The thread ends when it sees this.
    Ended,
}

impl<G: Send + 'static> Collector<G> {
    pub(super) fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::new(State::Waiting), changed: Condvar::new() });
        let thread_s = Arc::clone(&shared);
        platform::spawn("memory-reporter", Box::new(move || thread_s.work()))?;
        Ok(Self(shared))
    }

    /// The result of a job; `None` if it took too long. Then the thread accepts no other job.
    pub(super) fn run(&self, job: Job<G>, deadline: Duration) -> Option<G> {
        let mut state = self.0.lock();
        *state = State::Given(job);
        self.0.changed.notify_all();
        let not_done = |state: &mut State<G>| !matches!(state, State::Done(_));
        let waited = self.0.changed.wait_timeout_while(state, deadline, not_done);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let before = mem::replace(&mut *state, State::Waiting);
        if let State::Done(result) = before {
            return Some(result);
        }
        *state = State::Ended;
        // Dropping a job may run code of the program, too.
        drop(state);
        drop(before);
        None
    }
}

impl<G> Shared<G> {
    fn work(&self) {
        let mut state = self.lock();
        loop {
            match mem::replace(&mut *state, State::Running) {
                State::Given(job) => {
                    drop(state);
                    let result = job();
                    state = self.lock();
                    if matches!(*state, State::Ended) {
                        // Nobody holds the lock while a result is dropped: that may run code of the program.
                        drop(state);
                        return;
                    }
                    *state = State::Done(result);
                    self.changed.notify_all();
                }
                State::Ended => return,
                other => {
                    *state = other;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<G>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<G> Drop for Collector<G> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let before = mem::replace(&mut *state, State::Ended);
        self.0.changed.notify_all();
        drop(state);
        drop(before);
    }
}
