//! The worker on its own thread.

use core::fmt;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use hashbrown::HashMap;
use memory_reporter::__private::contain;

use super::import::import;
use super::{Answer, HeapAnalysesWorker, SnapshotState, SnapshotSummary, Watched, WorkerError};
use crate::breakdown::Breakdown;
use crate::diff::Difference;
use crate::dominators::{DominatorTreeNode, FetchOptions, Fetched};
use crate::graph::{Graph, NodeId};
use crate::live::{HeapGraph, LiveOptions, Roots, Saved};
use crate::paths::ShortestPaths;
use crate::progress::Progress;
use crate::report::Report;
use crate::snapshot::{ReadOptions, WriteOptions};
use crate::tree::{CensusTree, TreeOptions};
use crate::whole_file::write_whole;

type Job = Box<dyn FnOnce(&mut HeapAnalysesWorker) + Send>;

/// An answer that is not there yet.
#[derive(Debug)]
pub struct Pending<T> {
    answer: Receiver<Answer<T>>,
    progress: Progress,
}

impl<T> Pending<T> {
    /// Waits for the answer.
    ///
    /// # Errors
    ///
    /// Of the request; [`WorkerError::Cancelled`] if it was cancelled in time.
    pub fn wait(self) -> Answer<T> {
        self.answer.recv().unwrap_or(Err(WorkerError::Gone))
    }

    /// The answer if it is there; `None` if it is not there yet. It is given once.
    pub fn poll(&self) -> Option<Answer<T>> {
        match self.answer.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(WorkerError::Gone)),
        }
    }

    /// How far it is, and how to cancel it.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}

/// Asks a [`HeapAnalysesWorker`] on a thread of its own, in the order of the requests.
///
/// Clones ask the same worker, which ends with the last of them.
///
/// ```
/// use heap_graph::HeapAnalysesClient;
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
    /// If the system has no more threads.
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
    ) -> Pending<T> {
        let (answer, receiver) = channel();
        let progress = Progress::new();
        let pending = Pending { answer: receiver, progress: progress.clone() };
        let job: Job = Box::new(move |worker| {
            // Nobody may be waiting any more.
            let _ = answer.send(answered(&progress, || request(worker, &progress)));
        });
        // If the worker has ended, the job is dropped, and whoever waits is told.
        let _ = self.jobs.send(job);
        pending
    }

    /// Asks for what changes the state of a snapshot: it has one until the request's turn, and another one
    /// after it, even if the request was cancelled before.
    fn ask_of<T: Send + 'static>(
        &self,
        path: PathBuf,
        [until, after]: [SnapshotState; 2],
        request: impl FnOnce(&mut HeapAnalysesWorker, &Path, &Progress, &States) -> Answer<T> + Send + 'static,
    ) -> Pending<T> {
        let (answer, receiver) = channel();
        let progress = Progress::new();
        let pending = Pending { answer: receiver, progress: progress.clone() };
        let states = Arc::clone(&self.states);
        set_state(&states, path.clone(), until);
        let job: Job = Box::new(move |worker| {
            let result = answered(&progress, || request(worker, &path, &progress, &states));
            let state = match &result {
                Ok(_) => Some(after),
                // What was read before still answers.
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

    /// What is happening to a snapshot; `None` if it was never heard of.
    pub fn state(&self, path: impl AsRef<Path>) -> Option<SnapshotState> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).get(path.as_ref()).cloned()
    }

    /// Says what is happening to a snapshot outside the worker: it is being saved, or imported.
    pub fn set_state(&self, path: impl Into<PathBuf>, state: SnapshotState) {
        set_state(&self.states, path.into(), state);
    }

    /// [`HeapAnalysesWorker::read_heap_snapshot`]
    pub fn read_heap_snapshot(&self, path: impl Into<PathBuf>) -> Pending<SnapshotSummary> {
        let states = [SnapshotState::Reading, SnapshotState::Read];
        self.ask_of(path.into(), states, |worker, path, progress, _| {
            worker.read_heap_snapshot(path, &ReadOptions::default(), progress)
        })
    }

    /// [`HeapGraph::save`], on the worker's thread.
    ///
    /// If it is cancelled, the walk ends with the value that it is at.
    pub fn save_heap_snapshot(
        &self,
        path: impl Into<PathBuf>,
        tell: impl Fn(&mut Roots<'_>) + Send + 'static,
    ) -> Pending<Saved> {
        let states = [SnapshotState::Saving, SnapshotState::Saved];
        self.ask_of(path.into(), states, move |_, path, progress, _| save(path, tell, progress))
    }

    /// Copies a file from elsewhere, and reads the copy, which is whole or not there.
    ///
    /// A file cannot be imported to where it is.
    pub fn import_heap_snapshot(
        &self,
        from: impl Into<PathBuf>,
        to: impl Into<PathBuf>,
    ) -> Pending<SnapshotSummary> {
        let (from, states) = (from.into(), [SnapshotState::Importing, SnapshotState::Read]);
        self.ask_of(to.into(), states, move |worker, path, progress, states| {
            import(&from, path, progress)?;
            set_state(states, path.to_owned(), SnapshotState::Reading);
            worker.read_heap_snapshot(path, &ReadOptions::default(), progress)
        })
    }

    /// [`HeapAnalysesWorker::insert`]
    pub fn insert(&self, path: impl Into<PathBuf>, graph: Graph) -> Pending<SnapshotSummary> {
        let (path, states) = (path.into(), Arc::clone(&self.states));
        self.ask(move |worker, _| {
            let summary = worker.insert(&path, graph);
            set_state(&states, path, SnapshotState::Read);
            Ok(summary)
        })
    }

    /// [`HeapAnalysesWorker::delete_heap_snapshot`]
    pub fn delete_heap_snapshot(&self, path: impl Into<PathBuf>) -> Pending<bool> {
        let (path, states) = (path.into(), Arc::clone(&self.states));
        self.ask(move |worker, _| {
            states.lock().unwrap_or_else(PoisonError::into_inner).remove(&path);
            Ok(worker.delete_heap_snapshot(&path))
        })
    }

    /// [`HeapAnalysesWorker::creation_time`]
    pub fn creation_time(&self, path: impl Into<PathBuf>) -> Pending<Option<u64>> {
        let path = path.into();
        self.ask(move |worker, _| worker.creation_time(&path))
    }

    /// [`HeapAnalysesWorker::take_census`]
    pub fn take_census(&self, path: impl Into<PathBuf>, breakdown: Breakdown) -> Pending<Report> {
        let path = path.into();
        self.ask(move |worker, progress| worker.take_census(&path, &breakdown, progress))
    }

    /// [`HeapAnalysesWorker::take_census_tree`]
    pub fn take_census_tree(
        &self,
        path: impl Into<PathBuf>,
        breakdown: Breakdown,
        options: TreeOptions,
    ) -> Pending<CensusTree> {
        let path = path.into();
        self.ask(move |worker, progress| worker.take_census_tree(&path, &breakdown, &options, progress))
    }

    /// [`HeapAnalysesWorker::take_census_diff`]
    pub fn take_census_diff(
        &self,
        first: impl Into<PathBuf>,
        second: impl Into<PathBuf>,
        breakdown: Breakdown,
    ) -> Pending<Difference> {
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
    ) -> Pending<Vec<NodeId>> {
        let path = path.into();
        self.ask(move |worker, progress| worker.census_individuals(&path, &breakdown, &leaves, max, progress))
    }

    /// [`HeapAnalysesWorker::compute_dominator_tree`]
    pub fn compute_dominator_tree(&self, path: impl Into<PathBuf>) -> Pending<()> {
        let path = path.into();
        self.ask(move |worker, progress| worker.compute_dominator_tree(&path, progress))
    }

    /// [`HeapAnalysesWorker::dominator_tree`]
    pub fn dominator_tree(
        &self,
        path: impl Into<PathBuf>,
        options: FetchOptions,
    ) -> Pending<DominatorTreeNode> {
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
    ) -> Pending<Fetched> {
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
    ) -> Pending<ShortestPaths<'static>> {
        let path = path.into();
        self.ask(move |worker, progress| worker.shortest_paths(&path, &targets, max, progress))
    }
}

/// The answer, unless the request was cancelled. A panic is one, too: the worker has other snapshots.
fn answered<T>(progress: &Progress, request: impl FnOnce() -> Answer<T>) -> Answer<T> {
    let answer = contain(move || match progress.is_cancelled() {
        true => Err(WorkerError::Cancelled),
        false => request(),
    });
    answer.unwrap_or_else(|panic| Err(WorkerError::Panicked(panic)))
}

fn save(path: &Path, tell: impl Fn(&mut Roots<'_>), progress: &Progress) -> Answer<Saved> {
    let saved = write_whole(path, |file| {
        let mut file = BufWriter::new(Watched { file, progress: progress.clone() });
        let saved = HeapGraph::stream(&mut file, LiveOptions::new(), &WriteOptions::new(), tell)?;
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
