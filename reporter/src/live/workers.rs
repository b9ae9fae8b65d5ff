//! The threads that answer. One that has nothing to do waits for a while, so that who asks again and
//! again does not find another thread among the reports each time.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::isolation;
use crate::platform::spawn_without_signals;

const MAX_WORKERS: usize = 8;
const MAX_IDLE: Duration = Duration::from_secs(30);

/// Threads that do one job each at a time.
pub(super) struct Workers<J>(Arc<Shared<J>>);

struct Shared<J> {
    run: Box<dyn Fn(J) + Send + Sync>,
    state: Mutex<State<J>>,
    more: Condvar,
}

struct State<J> {
    /// No more than there are idle threads.
    jobs: VecDeque<J>,
    idle: usize,
    workers: usize,
}

/// All threads have something to do; and the job.
pub(super) struct Busy<J>(pub(super) J);

impl<J: Send + 'static> Workers<J> {
    pub(super) fn new(run: impl Fn(J) + Send + Sync + 'static) -> Self {
        let state = State { jobs: VecDeque::new(), idle: 0, workers: 0 };
        Self(Arc::new(Shared { run: Box::new(run), state: Mutex::new(state), more: Condvar::new() }))
    }

    /// Has a thread do a job; without one to be had the job is dropped.
    pub(super) fn start(&self, job: J) -> Result<(), Busy<J>> {
        let mut state = self.0.lock();
        if state.jobs.len() < state.idle {
            state.jobs.push_back(job);
            self.0.more.notify_one();
            return Ok(());
        }
        if state.workers == MAX_WORKERS {
            return Err(Busy(job));
        }
        state.workers += 1;
        drop(state);
        let shared = Arc::clone(&self.0);
        if spawn_without_signals("about-memory", move || shared.work(job)).is_err() {
            self.0.lock().workers -= 1;
        }
        Ok(())
    }
}

impl<J> Shared<J> {
    fn work(&self, first: J) {
        let mut next = Some(first);
        while let Some(job) = next {
            // The panic hook has said what went wrong, and a thread is not worth less for it.
            let _ = isolation::contain(|| (self.run)(job));
            next = self.wait();
        }
    }

    /// The next job, or `None` if none came for long.
    fn wait(&self) -> Option<J> {
        let mut state = self.lock();
        state.idle += 1;
        let waited = self.more.wait_timeout_while(state, MAX_IDLE, |state| state.jobs.is_empty());
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        let job = state.jobs.pop_front();
        if job.is_none() {
            state.workers -= 1;
        }
        job
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
