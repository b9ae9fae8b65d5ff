//! Runs computations, each on a thread of its own, and keeps their states.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::answer::Answer;
use super::cache::{Found, Running, TaskCache};
use super::compute::{Key, Needs, compute};
use super::error::SessionError;
use super::event::{Events, Subject};
use super::files::Files;
use super::id::JobId;
use super::jobs::Jobs;
use super::orders::Orders;
use super::pending::{Pending, PendingState};
use super::query::Query;
use super::snapshots::Snapshots;
use super::state::{CensusState, DiffState, DominatorState, IndividualsState, State, TreeMapState};

/// The most states of ended computations to keep.
const MAX_STAGES: usize = 1_000;

/// The state of a computation and of what front ends do with its result.
#[derive(Clone, Debug)]
enum Stage {
    Census(CensusState),
    TreeMap(TreeMapState),
    Diff(DiffState),
    Dominators(DominatorState),
    Individuals(IndividualsState),
}

impl Stage {
    /// The first state. Searches, suspects, paths and reports have the states of a census.
    fn first(key: &Key) -> Self {
        match key {
            Key::Query(Query::TreeMap { .. }) => Self::TreeMap(TreeMapState::Saving),
            Key::Query(Query::Diff { .. }) => Self::Diff(DiffState::Selecting),
            Key::Query(Query::Dominators { .. }) => Self::Dominators(DominatorState::Computing),
            Key::Query(Query::Individuals { .. }) => {
                Self::Individuals(IndividualsState::ComputingDominatorTree)
            }
            Key::Query(_) | Key::Report(..) | Key::Walk(..) => Self::Census(CensusState::Saving),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Census(state) => state.name(),
            Self::TreeMap(state) => state.name(),
            Self::Diff(state) => state.name(),
            Self::Dominators(state) => state.name(),
            Self::Individuals(state) => state.name(),
        }
    }

    fn fail(&mut self, reason: String) {
        let failed = match self {
            Self::Census(state) => state.advance(CensusState::Error(reason)),
            Self::TreeMap(state) => state.advance(TreeMapState::Error(reason)),
            Self::Diff(state) => state.advance(DiffState::Error(reason)),
            Self::Dominators(state) => state.advance(DominatorState::Error(reason)),
            Self::Individuals(state) => state.advance(IndividualsState::Error(reason)),
        };
        failed.expect("what runs may fail");
    }

    fn succeed(&mut self) {
        let done = match self {
            Self::Census(state) => state.advance(CensusState::Saved),
            Self::TreeMap(state) => state.advance(TreeMapState::Saved),
            Self::Diff(state) => state.advance(DiffState::TookDiff),
            Self::Dominators(state) => state.advance(DominatorState::Computed),
            Self::Individuals(state) => state.advance(IndividualsState::Fetched),
        };
        done.expect("what runs may end");
    }
}

#[derive(Debug)]
struct Held {
    job: JobId,
    stage: Stage,
    /// Front ends that take rows of a dominator tree at this time.
    fetching: usize,
}

#[derive(Debug)]
pub(super) struct Engine {
    pub(super) snapshots: Snapshots,
    pub(super) cache: Arc<TaskCache<Key, Answer>>,
    pub(super) jobs: Jobs,
    pub(super) events: Arc<Events>,
    pub(super) max_jobs: usize,
    pub(super) orders: Orders,
    stages: Mutex<HashMap<Key, Held>>,
    /// The last field: the files of snapshots go before their folder.
    pub(super) files: Files,
}

impl Engine {
    pub(super) fn new(max_snapshots: usize, max_jobs: usize, budget: usize, events: Events) -> Self {
        let events = Arc::new(events);
        Self {
            snapshots: Snapshots::new(max_snapshots, Arc::clone(&events)),
            cache: Arc::new(TaskCache::new(budget)),
            jobs: Jobs::default(),
            events,
            max_jobs,
            orders: Orders::default(),
            stages: Mutex::default(),
            files: Files::default(),
        }
    }

    fn stages(&self) -> MutexGuard<'_, HashMap<Key, Held>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, key: &Key, held: &Held, message: &str) {
        self.events.add(Subject::Job(held.job), key.kind(), held.stage.name(), message);
    }

    /// Joins the computation of a key, or starts it.
    pub(super) fn ask(self: &Arc<Self>, key: Key) -> Result<Pending, SessionError> {
        let state = match self.cache.join(&key, || self.jobs.next()) {
            Found::Done(answer) => PendingState::Done(answer),
            Found::Running(task) => PendingState::Running(key, task),
            Found::New(task) => {
                self.start(&key, &task)?;
                PendingState::Running(key, task)
            }
        };
        Ok(Pending { state, cache: Arc::clone(&self.cache) })
    }

    /// Starts the computation of a key, if there is none. Nobody waits for it; it goes on all the same.
    pub(super) fn prepare(self: &Arc<Self>, key: &Key) {
        if let Found::New(task) = self.cache.join(key, || self.jobs.next()) {
            // Whoever needs the answer asks again, and learns why there is none.
            let _ = self.start(key, &task);
        }
    }

    fn start(self: &Arc<Self>, key: &Key, task: &Arc<Running<Answer>>) -> Result<(), SessionError> {
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
        self.begin(key, task.job);
        match thread::Builder::new().name("session".to_owned()).spawn(run) {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = SessionError::Failed(format!("no thread can be started: {error}"));
                self.end(key, task.job, Some(&error));
                refuse(error)
            }
        }
    }

    fn begin(&self, key: &Key, job: JobId) {
        let mut stages = self.stages();
        if stages.len() >= MAX_STAGES {
            let running: Vec<_> = self.jobs.list().iter().map(|job| job.id).collect();
            stages.retain(|_, held| running.contains(&held.job));
        }
        let stage = match stages.remove(key).map(|held| held.stage) {
            // The cache has dropped the result.
            Some(Stage::Census(mut state @ CensusState::Saved)) => {
                state.advance(CensusState::Saving).map(|()| Stage::Census(state))
            }
            Some(Stage::TreeMap(mut state @ TreeMapState::Saved)) => {
                state.advance(TreeMapState::Saving).map(|()| Stage::TreeMap(state))
            }
            Some(Stage::Diff(mut state @ DiffState::TookDiff)) => {
                state.advance(DiffState::TakingDiff).map(|()| Stage::Diff(state))
            }
            _ => Ok(Stage::first(key)),
        };
        let stage = stage.expect("what has ended may begin again");
        let mut held = Held { job, stage, fetching: 0 };
        self.tell(key, &held, "");
        if let Stage::Diff(state @ DiffState::Selecting) = &mut held.stage {
            state.advance(DiffState::TakingDiff).expect("both snapshots are selected");
            self.tell(key, &held, "");
        }
        stages.insert(key.clone(), held);
    }

    /// The dominator tree that a computation needs is there.
    fn has_tree(&self, key: &Key, job: JobId) {
        let mut stages = self.stages();
        let Some(held) = stages.get_mut(key).filter(|held| held.job == job) else { return };
        if let Stage::Individuals(state) = &mut held.stage {
            state.advance(IndividualsState::Fetching).expect("individuals follow their tree");
            self.tell(key, held, "");
        }
    }

    fn end(&self, key: &Key, job: JobId, error: Option<&SessionError>) {
        let mut stages = self.stages();
        let Some(held) = stages.get_mut(key).filter(|held| held.job == job) else { return };
        match error {
            None => held.stage.succeed(),
            Some(SessionError::Cancelled) => {
                stages.remove(key);
                self.events.add(Subject::Job(job), key.kind(), "cancelled", "");
                return;
            }
            Some(error) => held.stage.fail(error.to_string()),
        }
        self.tell(key, held, &error.map(ToString::to_string).unwrap_or_default());
    }

    fn run(self: &Arc<Self>, key: &Key, task: &Arc<Running<Answer>>) {
        let needs = Needs {
            graph: &|snapshot| self.snapshots.graph(snapshot),
            answer: &|key| {
                let pending = self.ask(key)?;
                match &pending.state {
                    PendingState::Done(answer) => Ok(Arc::clone(answer)),
                    PendingState::Running(_, other) => other.wait_for(&task.progress),
                }
            },
            has_tree: &|| self.has_tree(key, task.job),
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
        self.end(key, task.job, outcome.as_ref().err());
        self.jobs.remove(task.job);
        self.cache.finish(key, task, outcome);
    }

    /// A front end takes rows of a dominator tree. Only the first rows of all make events.
    pub(super) fn begin_rows(&self, key: &Key) {
        self.advance_rows(key, |held| {
            let Stage::Dominators(state) = &mut held.stage else { return false };
            held.fetching += 1;
            if held.fetching > 1 {
                return false;
            }
            let is_first = *state == DominatorState::Computed;
            let next = if is_first { DominatorState::Fetching } else { DominatorState::IncrementalFetching };
            state.advance(next).expect("rows follow their tree");
            is_first
        });
    }

    /// The front end has the rows.
    pub(super) fn end_rows(&self, key: &Key) {
        self.advance_rows(key, |held| {
            let Stage::Dominators(state) = &mut held.stage else { return false };
            held.fetching = held.fetching.saturating_sub(1);
            // A tree that was computed anew meanwhile has no rows to end.
            let is_fetching =
                matches!(*state, DominatorState::Fetching | DominatorState::IncrementalFetching);
            if held.fetching > 0 || !is_fetching {
                return false;
            }
            let is_first = *state == DominatorState::Fetching;
            state.advance(DominatorState::Loaded).expect("rows that are taken come");
            is_first
        });
    }

    fn advance_rows(&self, key: &Key, advance: impl FnOnce(&mut Held) -> bool) {
        let mut stages = self.stages();
        let Some(held) = stages.get_mut(key) else { return };
        // A tree that is computed again has no rows yet.
        if matches!(&held.stage, Stage::Dominators(DominatorState::Computing | DominatorState::Error(_))) {
            return;
        }
        if advance(held) {
            self.tell(key, held, "");
        }
    }
}
