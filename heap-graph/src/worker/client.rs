//! The worker on a thread of its own.

use core::fmt;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use hashbrown::HashMap;
use memory_report::new_file::{self, Readers};
use memory_reporter::__private::contain;

use super::import::import;
use super::{Answer, HeapAnalysesWorker, SnapshotState, SnapshotSummary, Watched, WorkerError};
use crate::census::{Breakdown, CensusDifference, CensusReport, CensusTree, TreeOptions};
use crate::dominators::{DominatorTreeNode, FetchOptions, FetchedChildren};
use crate::graph::{Graph, NodeId};
use crate::live::{HeapGraph, LiveOptions, Roots, SavedSnapshot};
use crate::paths::ShortestPaths;
use crate::progress::Progress;
use crate::snapshot::{ReadOptions, WriteOptions};

type Job = Box<dyn FnOnce(&mut HeapAnalysesWorker) + Send>;

/// The answer to a request that the worker has not yet completed.
#[derive(Debug)]
pub struct PendingAnswer<T> {
    answer: Receiver<Answer<T>>,
    progress: Progress,
}

impl<T> PendingAnswer<T> {
    /// Waits for the answer.
    ///
    /// # Errors
    ///
    /// The error of the request, or [`WorkerError::Cancelled`] if it was cancelled in time.
    pub fn wait(self) -> Answer<T> {
        self.answer.recv().unwrap_or(Err(WorkerError::Gone))
    }

    /// The answer, or `None` if the worker has not completed the request. Only one call returns the answer.
    pub fn poll(&self) -> Option<Answer<T>> {
        match self.answer.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(WorkerError::Gone)),
        }
    }

    /// The progress of the request, which can cancel it.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}

/// Sends requests to a [`HeapAnalysesWorker`] on a thread of its own, which answers them in order.
///
/// Clones send to the same worker, which ends when the last clone is dropped.
///
/// ```
/// use heap_graph::worker::HeapAnalysesClient;
///
/// let client = HeapAnalysesClient::start().unwrap();
/// let answer = client.read_heap_snapshot("no-such-file.fxsnapshot");
/// assert_eq!(answer.wait().unwrap_err().to_string(), "not found");
/// ```
#[derive(Clone)]
pub struct HeapAnalysesClient {
    jobs: Sender<Job>,
    states: Arc<States>,
}

type States = Mutex<HashMap<PathBuf, SnapshotState>>;

impl fmt::Debug for HeapAnalysesClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapAnalysesClient").finish_non_exhaustive()
    }
}

impl HeapAnalysesClient {
    /// Starts a worker.
    ///
    /// # Errors
    ///
    /// The system cannot start another thread.
    pub fn start() -> std::io::Result<Self> {
        let (jobs, todo) = channel::<Job>();
        thread::Builder::new().name("heap-analyses".to_owned()).spawn(move || {
            let mut worker = HeapAnalysesWorker::new();
            while let Ok(job) = todo.recv() {
                job(&mut worker);
            }
        })?;
        Ok(Self { jobs, states: Arc::default() })
    }

    fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&mut HeapAnalysesWorker, &Progress) -> Answer<T> + Send + 'static,
    ) -> PendingAnswer<T> {
        let (answer, receiver) = channel();
        let progress = Progress::new();
        let pending = PendingAnswer { answer: receiver, progress: progress.clone() };
        let job: Job = Box::new(move |worker| {
            // The send fails if the caller no longer waits.
            let _ = answer.send(answered(&progress, || request(worker, &progress)));
        });
        // If the worker has ended, the send drops the job with its sender, and the caller gets `WorkerError::Gone`.
        let _ = self.jobs.send(job);
        pending
    }

    /// Sends a request that changes the state of a snapshot. The snapshot has the first state until the worker has
    /// completed the request, and the second one after that.
    fn ask_of<T: Send + 'static>(
        &self,
        path: PathBuf,
        [until, after]: [SnapshotState; 2],
        request: impl FnOnce(&mut HeapAnalysesWorker, &Path, &Progress, &States) -> Answer<T> + Send + 'static,
    ) -> PendingAnswer<T> {
        let (answer, receiver) = channel();
        let progress = Progress::new();
        let pending = PendingAnswer { answer: receiver, progress: progress.clone() };
        let states = Arc::clone(&self.states);
        set_state(&states, path.clone(), until);
        let job: Job = Box::new(move |worker| {
            let result = answered(&progress, || request(worker, &path, &progress, &states));
            let state = match &result {
                Ok(_) => Some(after),
                // The snapshot that the worker has read before still answers.
                Err(_) if worker.has(&path) => Some(SnapshotState::Read),
                Err(WorkerError::Cancelled) => path.exists().then_some(SnapshotState::Saved),
                Err(error) => Some(SnapshotState::Error(error.to_string())),
            };
            match state {
                Some(state) => set_state(&states, path, state),
                None => drop(states.lock().unwrap_or_else(PoisonError::into_inner).remove(&path)),
            }
            let _ = answer.send(result);
        });
        let _ = self.jobs.send(job);
        pending
    }

    /// The state of a snapshot; `None` if no request has named it.
    pub fn state(&self, path: impl AsRef<Path>) -> Option<SnapshotState> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).get(path.as_ref()).cloned()
    }

    /// Sets the state of a snapshot that other code than the worker saves or imports.
    pub fn set_state(&self, path: impl Into<PathBuf>, state: SnapshotState) {
        set_state(&self.states, path.into(), state);
    }

    /// [`HeapAnalysesWorker::read_heap_snapshot`]
    pub fn read_heap_snapshot(&self, path: impl Into<PathBuf>) -> PendingAnswer<SnapshotSummary> {
        let states = [SnapshotState::Reading, SnapshotState::Read];
        self.ask_of(path.into(), states, |worker, path, progress, _| {
            worker.read_heap_snapshot(path, &ReadOptions::default(), progress)
        })
    }

    /// [`HeapGraph::save`], on the worker's thread.
    ///
    /// A cancelled walk ends after the value at hand.
    pub fn save_heap_snapshot(
        &self,
        path: impl Into<PathBuf>,
        add_roots: impl Fn(&mut Roots<'_>) + Send + 'static,
    ) -> PendingAnswer<SavedSnapshot> {
        let states = [SnapshotState::Saving, SnapshotState::Saved];
        self.ask_of(path.into(), states, move |_, path, progress, _| save(path, add_roots, progress))
    }

    /// Copies a file and reads the copy. An error leaves no partial copy.
    ///
    /// `from` and `to` must not be the same file.
    pub fn import_heap_snapshot(
        &self,
        from: impl Into<PathBuf>,
        to: impl Into<PathBuf>,
    ) -> PendingAnswer<SnapshotSummary> {
        let (from, states) = (from.into(), [SnapshotState::Importing, SnapshotState::Read]);
        self.ask_of(to.into(), states, move |worker, path, progress, states| {
            import(&from, path, progress)?;
            set_state(states, path.to_owned(), SnapshotState::Reading);
            worker.read_heap_snapshot(path, &ReadOptions::default(), progress)
        })
    }

    /// [`HeapAnalysesWorker::insert`]
    pub fn insert(&self, path: impl Into<PathBuf>, graph: Graph) -> PendingAnswer<SnapshotSummary> {
        let (path, states) = (path.into(), Arc::clone(&self.states));
        self.ask(move |worker, _| {
            let summary = worker.insert(&path, graph);
            set_state(&states, path, SnapshotState::Read);
            Ok(summary)
        })
    }

    /// [`HeapAnalysesWorker::delete_heap_snapshot`]
    pub fn delete_heap_snapshot(&self, path: impl Into<PathBuf>) -> PendingAnswer<bool> {
        let (path, states) = (path.into(), Arc::clone(&self.states));
        self.ask(move |worker, _| {
            states.lock().unwrap_or_else(PoisonError::into_inner).remove(&path);
            Ok(worker.delete_heap_snapshot(&path))
        })
    }

    /// [`HeapAnalysesWorker::creation_time`]
    pub fn creation_time(&self, path: impl Into<PathBuf>) -> PendingAnswer<Option<u64>> {
        let path = path.into();
        self.ask(move |worker, _| worker.creation_time(&path))
    }

    /// [`HeapAnalysesWorker::take_census`]
    pub fn take_census(&self, path: impl Into<PathBuf>, breakdown: Breakdown) -> PendingAnswer<CensusReport> {
        let path = path.into();
        self.ask(move |worker, progress| worker.take_census(&path, &breakdown, progress))
    }

    /// [`HeapAnalysesWorker::take_census_tree`]
    pub fn take_census_tree(
        &self,
        path: impl Into<PathBuf>,
        breakdown: Breakdown,
        options: TreeOptions,
    ) -> PendingAnswer<CensusTree> {
        let path = path.into();
        self.ask(move |worker, progress| worker.take_census_tree(&path, &breakdown, &options, progress))
    }

    /// [`HeapAnalysesWorker::take_census_diff`]
    pub fn take_census_diff(
        &self,
        first: impl Into<PathBuf>,
        second: impl Into<PathBuf>,
        breakdown: Breakdown,
    ) -> PendingAnswer<CensusDifference> {
        let (first, second) = (first.into(), second.into());
        self.ask(move |worker, progress| worker.take_census_diff(&first, &second, &breakdown, progress))
    }

    /// [`HeapAnalysesWorker::census_individuals`]
    pub fn census_individuals(
        &self,
        path: impl Into<PathBuf>,
        breakdown: Breakdown,
        leaves: Vec<u64>,
        max: usize,
    ) -> PendingAnswer<Vec<NodeId>> {
        let path = path.into();
        self.ask(move |worker, progress| worker.census_individuals(&path, &breakdown, &leaves, max, progress))
    }

    /// [`HeapAnalysesWorker::compute_dominator_tree`]
    pub fn compute_dominator_tree(&self, path: impl Into<PathBuf>) -> PendingAnswer<()> {
        let path = path.into();
        self.ask(move |worker, progress| worker.compute_dominator_tree(&path, progress))
    }

    /// [`HeapAnalysesWorker::dominator_tree`]
    pub fn dominator_tree(
        &self,
        path: impl Into<PathBuf>,
        options: FetchOptions,
    ) -> PendingAnswer<DominatorTreeNode> {
        let path = path.into();
        self.ask(move |worker, progress| worker.dominator_tree(&path, &options, progress))
    }

    /// [`HeapAnalysesWorker::immediately_dominated`]
    pub fn immediately_dominated(
        &self,
        path: impl Into<PathBuf>,
        node: NodeId,
        start: usize,
        count: usize,
        options: FetchOptions,
    ) -> PendingAnswer<FetchedChildren> {
        let path = path.into();
        self.ask(move |worker, progress| {
            worker.immediately_dominated(&path, node, start, count, &options, progress)
        })
    }

    /// [`HeapAnalysesWorker::shortest_paths`]
    pub fn shortest_paths(
        &self,
        path: impl Into<PathBuf>,
        targets: Vec<NodeId>,
        max: usize,
    ) -> PendingAnswer<ShortestPaths<'static>> {
        let path = path.into();
        self.ask(move |worker, progress| worker.shortest_paths(&path, &targets, max, progress))
    }
}

/// The answer to a request that is not cancelled. A panic becomes an error, so that the worker and its other snapshots
/// live on.
fn answered<T>(progress: &Progress, request: impl FnOnce() -> Answer<T>) -> Answer<T> {
    let answer = contain(move || match progress.is_cancelled() {
        true => Err(WorkerError::Cancelled),
        false => request(),
    });
    answer.unwrap_or_else(|panic| Err(WorkerError::Panicked(panic)))
}

fn save(path: &Path, add_roots: impl Fn(&mut Roots<'_>), progress: &Progress) -> Answer<SavedSnapshot> {
    let saved = new_file::write(path, Readers::User, |file| {
        let mut file = BufWriter::new(Watched { file, progress: progress.clone() });
        let saved = HeapGraph::stream(&mut file, LiveOptions::new(), &WriteOptions::new(), add_roots)?;
        file.flush()?;
        Ok(saved)
    });
    saved.map_err(|error| match progress.is_cancelled() {
        true => WorkerError::Cancelled,
        false => WorkerError::Save(error),
    })
}

fn set_state(states: &States, path: PathBuf, state: SnapshotState) {
    states.lock().unwrap_or_else(PoisonError::into_inner).insert(path, state);
}
