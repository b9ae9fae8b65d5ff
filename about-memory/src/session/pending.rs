//! Answers that a session is still computing.

use std::sync::Arc;
use std::time::Duration;

use super::answer::QueryAnswer;
use super::cache::{RunningTask, TaskCache};
use super::compute::TaskKey;
use super::error::SessionError;
use super::id::JobId;

/// An answer that a session is computing. Dropping it ends the wait. A computation without a waiting front end is
/// cancelled.
#[derive(Debug)]
pub struct PendingAnswer {
    pub(super) state: PendingState,
    pub(super) cache: Arc<TaskCache<TaskKey, QueryAnswer>>,
}

#[derive(Debug)]
pub(super) enum PendingState {
    Done(Arc<QueryAnswer>),
    Running(TaskKey, Arc<RunningTask<QueryAnswer>>),
}

impl PendingAnswer {
    /// Returns the answer, or `None` if it is not ready within `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<Result<Arc<QueryAnswer>, SessionError>> {
        match &self.state {
            PendingState::Done(answer) => Some(Ok(Arc::clone(answer))),
            PendingState::Running(_, task) => task.wait(timeout),
        }
    }

    /// Waits for the answer without a time limit.
    ///
    /// # Errors
    ///
    /// Returns an error if the computation failed or was cancelled.
    pub fn join(&self) -> Result<Arc<QueryAnswer>, SessionError> {
        loop {
            if let Some(answer) = self.wait(Duration::from_secs(3600)) {
                return answer;
            }
        }
    }

    /// Returns the number of the computation; `None` if the answer was in the cache.
    pub fn job(&self) -> Option<JobId> {
        match &self.state {
            PendingState::Done(_) => None,
            PendingState::Running(_, task) => Some(task.job),
        }
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        if let PendingState::Running(key, task) = &self.state {
            self.cache.leave(key, task);
        }
    }
}
