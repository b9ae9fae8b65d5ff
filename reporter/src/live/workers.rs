//! The threads that answer. An idle thread waits for a while, so that repeated requests use the same thread. A new
//! thread for each request would be visible in the reports.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::platform::{is_hosted, spawn_without_signals};
use crate::reporting::isolation;

const MAX_WORKERS: usize = 8;
const MAX_IDLE: Duration = Duration::from_secs(30);

/// A pool of threads. Each thread does one job at a time.
pub(super) struct WorkerThreads<J>(Arc<WorkerQueue<J>>);

struct WorkerQueue<J> {
    run: Box<dyn Fn(J) + Send + Sync>,
    state: Mutex<WorkerState<J>>,
    more: Condvar,
}

struct WorkerState<J> {
    /// The jobs that idle threads have not taken yet: at most one for each idle thread.
    jobs: VecDeque<J>,
    idle: usize,
    workers: usize,
}

/// The error if all threads are busy. It contains the job, which was not started.
pub(super) struct AllBusy<J>(pub(super) J);

impl<J: Send + 'static> WorkerThreads<J> {
    pub(super) fn new(run: impl Fn(J) + Send + Sync + 'static) -> Self {
        let state = WorkerState { jobs: VecDeque::new(), idle: 0, workers: 0 };
        Self(Arc::new(WorkerQueue { run: Box::new(run), state: Mutex::new(state), more: Condvar::new() }))
    }

    /// Passes a job to a thread. Drops the job if no thread can be created.
    pub(super) fn start(&self, job: J) -> Result<(), AllBusy<J>> {
        let mut state = self.0.lock();
        if state.jobs.len() < state.idle {
            state.jobs.push_back(job);
            self.0.more.notify_one();
            return Ok(());
        }
        if state.workers == MAX_WORKERS {
            return Err(AllBusy(job));
        }
        state.workers += 1;
        drop(state);
        let shared = Arc::clone(&self.0);
        if spawn_without_signals("about-memory", Box::new(move || shared.work(job))).is_err() {
            self.0.lock().workers -= 1;
        }
        Ok(())
    }
}

impl<J> WorkerQueue<J> {
    fn work(&self, first: J) {
        let mut next = Some(first);
        while let Some(job) = next {
            // The panic hook has already reported a panic, and the thread can do other jobs.
            let _ = isolation::contain(|| (self.run)(job));
            next = self.wait();
        }
    }

    /// Waits for the next job; `None` if none arrives in time.
    fn wait(&self) -> Option<J> {
        let mut state = self.lock();
        if is_hosted() {
            // A thread that a `ThreadHost` provides ends when it has no job, so that the program does not see an idle
            // thread.
            state.workers -= 1;
            return None;
        }
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

    fn lock(&self) -> MutexGuard<'_, WorkerState<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
