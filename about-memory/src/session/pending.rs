//! Answers that a session still computes.

use std::sync::Arc;
use std::time::Duration;

use super::answer::Answer;
use super::cache::{Running, TaskCache};
use super::compute::Key;
use super::error::SessionError;
use super::id::JobId;

/// An answer that a session computes. Whoever drops it no longer waits; a computation that nobody waits for ends.
#[derive(Debug)]
pub struct Pending {
    pub(super) state: PendingState,
    pub(super) cache: Arc<TaskCache<Key, Answer>>,
}

#[derive(Debug)]
pub(super) enum PendingState {
    Done(Arc<Answer>),
    Running(Key, Arc<Running<Answer>>),
}

impl Pending {
    /// The answer, or `None` if there is none within `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<Result<Arc<Answer>, SessionError>> {
        match &self.state {
            PendingState::Done(answer) => Some(Ok(Arc::clone(answer))),
            PendingState::Running(_, task) => task.wait(timeout),
        }
    }

    /// Waits for the answer as long as it takes.
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub fn join(&self) -> Result<Arc<Answer>, SessionError> {
        loop {
            if let Some(answer) = self.wait(Duration::from_secs(3600)) {
                return answer;
            }
        }
    }

    /// The number of the computation; `None` if the answer was in the cache.
    pub fn job(&self) -> Option<JobId> {
        match &self.state {
            PendingState::Done(_) => None,
            PendingState::Running(_, task) => Some(task.job),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let PendingState::Running(key, task) = &self.state {
            self.cache.leave(key, task);
        }
    }
}
