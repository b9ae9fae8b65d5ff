//! Jobs: running computations, with their progress.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use heap_graph::AnalysisProgress;

use super::id::JobId;

/// A running computation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionJob {
    /// The number of the computation.
    pub id: JobId,
    /// The kind of the computation, such as `census`.
    pub kind: &'static str,
    /// The finished steps, and all steps known so far, as in [`AnalysisProgress::steps`].
    pub steps: (u64, u64),
}

/// All running computations.
#[derive(Debug, Default)]
pub(super) struct RunningJobs(Mutex<AllJobs>);

#[derive(Debug, Default)]
struct AllJobs {
    last: u64,
    jobs: BTreeMap<JobId, (&'static str, AnalysisProgress)>,
}

impl RunningJobs {
    pub(super) fn next(&self) -> JobId {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.last += 1;
        JobId(all.last)
    }

    /// Adds a job. Returns `false` if too many jobs run.
    pub(super) fn add(
        &self,
        id: JobId,
        kind: &'static str,
        progress: &AnalysisProgress,
        most: usize,
    ) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = all.jobs.len() < most;
        if has_room {
            all.jobs.insert(id, (kind, progress.clone()));
        }
        has_room
    }

    pub(super) fn remove(&self, id: JobId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).jobs.remove(&id);
    }

    pub(super) fn list(&self) -> Vec<SessionJob> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let job = |(id, (kind, progress)): (&JobId, &(&'static str, AnalysisProgress))| SessionJob {
            id: *id,
            kind,
            steps: progress.steps(),
        };
        all.jobs.iter().map(job).collect()
    }

    pub(super) fn cancel(&self, id: JobId) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let job = all.jobs.get(&id);
        job.inspect(|(_, progress)| progress.cancel()).is_some()
    }

    pub(super) fn cancel_all(&self) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.jobs.values().for_each(|(_, progress)| progress.cancel());
    }
}
