//! Runs each computation on its own thread, and reports its start and end as events.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use super::answer::QueryAnswer;
use super::cache::{CacheEntry, RunningTask, TaskCache};
use super::compute::{TaskInputs, TaskKey, compute};
use super::error::SessionError;
use super::event::{EventLog, EventSubject};
use super::files::SessionFiles;
use super::id::JobId;
use super::jobs::RunningJobs;
use super::orders::NodeOrders;
use super::pending::{PendingAnswer, PendingState};
use super::snapshots::SessionSnapshots;

#[derive(Debug)]
pub(super) struct TaskEngine {
    pub(super) snapshots: SessionSnapshots,
    pub(super) cache: Arc<TaskCache<TaskKey, QueryAnswer>>,
    pub(super) jobs: RunningJobs,
    pub(super) events: Arc<EventLog>,
    pub(super) max_jobs: usize,
    pub(super) orders: NodeOrders,
    /// This must be the last field: it is dropped last, and the files of snapshots must be removed before their folder.
    pub(super) files: SessionFiles,
}

impl TaskEngine {
    pub(super) fn new(max_snapshots: usize, max_jobs: usize, budget: usize, events: EventLog) -> Self {
        let events = Arc::new(events);
        Self {
            snapshots: SessionSnapshots::new(max_snapshots, Arc::clone(&events)),
            cache: Arc::new(TaskCache::new(budget)),
            jobs: RunningJobs::default(),
            events,
            max_jobs,
            orders: NodeOrders::default(),
            files: SessionFiles::default(),
        }
    }

    /// Adds an event of a computation: `computing`, and then `computed`, `cancelled` or `error`.
    fn tell(&self, key: &TaskKey, job: JobId, state: &'static str, reason: &str) {
        self.events.add(EventSubject::Job(job), key.kind(), state, reason);
    }

    /// Joins the computation of a key, or starts it.
    pub(super) fn ask(self: &Arc<Self>, key: TaskKey) -> Result<PendingAnswer, SessionError> {
        let state = match self.cache.join(&key, || self.jobs.next()) {
            CacheEntry::Done(answer) => PendingState::Done(answer),
            CacheEntry::Running(task) => PendingState::Running(key, task),
            CacheEntry::New(task) => {
                self.start(&key, &task)?;
                PendingState::Running(key, task)
            }
        };
        Ok(PendingAnswer { state, cache: Arc::clone(&self.cache) })
    }

    /// Starts the computation of a key unless it runs already. The computation continues even without a waiting front
    /// end.
    pub(super) fn prepare(self: &Arc<Self>, key: &TaskKey) {
        if let CacheEntry::New(task) = self.cache.join(key, || self.jobs.next()) {
            // An error is ignored here. A front end that needs the answer asks again and gets the error.
            let _ = self.start(key, &task);
        }
    }

    fn start(
        self: &Arc<Self>,
        key: &TaskKey,
        task: &Arc<RunningTask<QueryAnswer>>,
    ) -> Result<(), SessionError> {
        let refuse = |error: SessionError| {
            self.jobs.remove(task.job);
            self.cache.finish(key, task, Err(error.clone()));
            Err(error)
        };
        if !self.jobs.add(task.job, key.kind(), &task.progress, self.max_jobs) {
            return refuse(SessionError::Busy(self.max_jobs));
        }
        let (engine, key_there, task_there) = (Arc::clone(self), key.clone(), Arc::clone(task));
        let run = move || engine.run(&key_there, &task_there);
        self.tell(key, task.job, "computing", "");
        match thread::Builder::new().name("session".to_owned()).spawn(run) {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = SessionError::Failed(format!("no thread can be started: {error}"));
                self.tell_end(key, task.job, Some(&error));
                refuse(error)
            }
        }
    }

    fn tell_end(&self, key: &TaskKey, job: JobId, error: Option<&SessionError>) {
        match error {
            None => self.tell(key, job, "computed", ""),
            Some(SessionError::Cancelled) => self.tell(key, job, "cancelled", ""),
            Some(error) => self.tell(key, job, "error", &error.to_string()),
        }
    }

    fn run(self: &Arc<Self>, key: &TaskKey, task: &Arc<RunningTask<QueryAnswer>>) {
        let needs = TaskInputs {
            graph: &|snapshot| self.snapshots.graph(snapshot),
            answer: &|key| {
                let pending = self.ask(key)?;
                match &pending.state {
                    PendingState::Done(answer) => Ok(Arc::clone(answer)),
                    PendingState::Running(_, other) => other.wait_for(&task.progress),
                }
            },
            progress: &task.progress,
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| compute(key, &needs)));
        let mut outcome =
            outcome.unwrap_or_else(|_| Err(SessionError::Failed("the analysis panicked".to_owned())));
        if task.progress.is_cancelled() {
            outcome = Err(SessionError::Cancelled);
        }
        let outcome = outcome.map(|answer| {
            let bytes = answer.memory();
            (answer, bytes)
        });
        self.tell_end(key, task.job, outcome.as_ref().err());
        self.jobs.remove(task.job);
        self.cache.finish(key, task, outcome);
    }
}
