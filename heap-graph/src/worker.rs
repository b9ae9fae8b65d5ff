//! All analyses in one place, for snapshots by name. [`HeapAnalysesClient`] runs them on a thread of their own, so that
//! a front end stays responsive.

mod client;
mod import;

pub use client::{HeapAnalysesClient, PendingAnswer};

use core::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hashbrown::HashMap;

use crate::census::{
    Breakdown, CensusDifference, CensusError, CensusReport, CensusTree, TreeOptions, census_watched,
};
use crate::dominators::{
    Arrays, DominatorTree, DominatorTreeNode, FetchOptions, FetchedChildren, individuals_watched,
};
use crate::graph::{Graph, NodeId, NodeIndex};
use crate::paths::{ShortestPaths, shortest_paths_watched};
use crate::progress::{Cancelled, Progress};
use crate::snapshot::{ReadOptions, SnapshotError, open, read_from};

/// Why a request has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkerError {
    /// The worker has no snapshot of this name.
    NoSnapshot(PathBuf),
    /// The snapshot has no such node.
    NoNode(NodeId),
    /// The root does not reach the node.
    NotReachable(NodeId),
    /// The snapshot cannot be read.
    Snapshot(SnapshotError),
    /// The snapshot cannot be written.
    Save(io::Error),
    /// The census failed.
    Census(CensusError),
    /// The request was cancelled.
    Cancelled,
    /// Code panicked during the request, such as that of a value to save. Contains the message of the panic.
    Panicked(String),
    /// The worker has ended.
    Gone,
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSnapshot(path) => write!(f, "{}: no snapshot of this name is loaded", path.display()),
            Self::NoNode(id) => write!(f, "no node has the id {id}"),
            Self::NotReachable(id) => write!(f, "the root does not reach node {id}"),
            Self::Snapshot(error) => error.fmt(f),
            Self::Save(error) => write!(f, "cannot be written: {error}"),
            Self::Census(error) => error.fmt(f),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Panicked(text) => write!(f, "panicked: {text}"),
            Self::Gone => f.write_str("the worker has ended"),
        }
    }
}

impl std::error::Error for WorkerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Snapshot(error) => Some(error),
            Self::Save(error) => Some(error),
            Self::Census(error) => Some(error),
            _ => None,
        }
    }
}

impl From<CensusError> for WorkerError {
    fn from(error: CensusError) -> Self {
        match error {
            CensusError::Cancelled => Self::Cancelled,
            error => Self::Census(error),
        }
    }
}

impl From<Cancelled> for WorkerError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// The state of a snapshot, for front ends to show.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotState {
    /// The worker writes it.
    Saving,
    /// It is in a file, which the worker has not read.
    Saved,
    /// The worker copies the file.
    Importing,
    /// The worker reads it.
    Reading,
    /// The worker has read it and answers requests about it.
    Read,
    /// It cannot be written or read, for this reason.
    Error(String),
}

/// A file whose reading or writing a progress counts and can cancel.
struct Watched<F> {
    file: F,
    progress: Progress,
}

impl<F> Watched<F> {
    fn look(&self) -> io::Result<()> {
        match self.progress.is_cancelled() {
            true => Err(io::Error::other("cancelled")),
            false => Ok(()),
        }
    }
}

impl<F: Read> Read for Watched<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.look()?;
        let bytes = self.file.read(buffer)?;
        self.progress.did(bytes as u64);
        Ok(bytes)
    }
}

/// The length of the file is unknown, so each byte joins the total when it is written.
impl<F: Write> Write for Watched<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.look()?;
        let bytes = self.file.write(bytes)?;
        self.progress.expect(bytes as u64);
        self.progress.did(bytes as u64);
        Ok(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.look()?;
        self.file.flush()
    }
}

/// The size and time of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotSummary {
    /// The number of nodes, the root included.
    pub nodes: usize,
    /// The number of edges.
    pub edges: usize,
    /// The time at which it was taken, in microseconds since 1970 UTC.
    pub creation_time: Option<u64>,
}

struct Snapshot {
    graph: Arc<Graph>,
    dominators: Option<Arc<Arrays>>,
}

impl Snapshot {
    fn dominators(&mut self, progress: &Progress) -> Result<DominatorTree<'_>, Cancelled> {
        let Self { graph, dominators } = self;
        if let Some(arrays) = dominators {
            return Ok(DominatorTree::from_arrays(graph, Arc::clone(arrays)));
        }
        let tree = DominatorTree::watched(graph, progress)?;
        *dominators = Some(tree.clone().into_arrays());
        Ok(tree)
    }
}

/// Snapshots by the path of their file, and the analyses of them.
///
/// Its methods run on the caller's thread; [`HeapAnalysesClient`] runs them on another.
#[derive(Default)]
pub struct HeapAnalysesWorker {
    snapshots: HashMap<PathBuf, Snapshot>,
}

impl fmt::Debug for HeapAnalysesWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapAnalysesWorker").field("snapshots", &self.snapshots.len()).finish()
    }
}

type Answer<T> = Result<T, WorkerError>;

impl HeapAnalysesWorker {
    /// A worker without snapshots.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a snapshot, and replaces one of the same name.
    ///
    /// # Errors
    ///
    /// [`WorkerError::Snapshot`] or [`WorkerError::Cancelled`].
    pub fn read_heap_snapshot(
        &mut self,
        path: &Path,
        options: &ReadOptions,
        progress: &Progress,
    ) -> Answer<SnapshotSummary> {
        let (file, length) = open(path).map_err(WorkerError::Snapshot)?;
        progress.expect(length);
        let watched = Watched { file, progress: progress.clone() };
        let graph = read_from(watched, options).map_err(|error| match progress.is_cancelled() {
            true => WorkerError::Cancelled,
            false => WorkerError::Snapshot(error),
        })?;
        Ok(self.insert(path, graph))
    }

    /// Whether the worker has a snapshot of this name.
    pub fn has(&self, path: &Path) -> bool {
        self.snapshots.contains_key(path)
    }

    /// Adds a graph, such as that of the running program, as if it came from a file of this name.
    pub fn insert(&mut self, path: &Path, graph: Graph) -> SnapshotSummary {
        let summary = SnapshotSummary {
            nodes: graph.node_count(),
            edges: graph.edge_count(),
            creation_time: graph.creation_time(),
        };
        let snapshot = Snapshot { graph: Arc::new(graph), dominators: None };
        self.snapshots.insert(path.to_owned(), snapshot);
        summary
    }

    /// Forgets a snapshot. Returns whether the worker had it.
    pub fn delete_heap_snapshot(&mut self, path: &Path) -> bool {
        self.snapshots.remove(path).is_some()
    }

    fn snapshot(&mut self, path: &Path) -> Answer<&mut Snapshot> {
        self.snapshots.get_mut(path).ok_or_else(|| WorkerError::NoSnapshot(path.to_owned()))
    }

    /// The graph of a snapshot.
    ///
    /// # Errors
    ///
    /// [`WorkerError::NoSnapshot`].
    pub fn graph(&mut self, path: &Path) -> Answer<Arc<Graph>> {
        self.snapshot(path).map(|snapshot| Arc::clone(&snapshot.graph))
    }

    /// The time at which the snapshot was taken, in microseconds since 1970 UTC.
    ///
    /// # Errors
    ///
    /// [`WorkerError::NoSnapshot`].
    pub fn creation_time(&mut self, path: &Path) -> Answer<Option<u64>> {
        self.snapshot(path).map(|snapshot| snapshot.graph.creation_time())
    }

    /// The report of a census.
    ///
    /// # Errors
    ///
    /// [`WorkerError::NoSnapshot`], [`WorkerError::Census`] or [`WorkerError::Cancelled`].
    pub fn take_census(
        &mut self,
        path: &Path,
        breakdown: &Breakdown,
        progress: &Progress,
    ) -> Answer<CensusReport> {
        Ok(census_watched(&self.snapshot(path)?.graph, breakdown, progress)?)
    }

    /// The report of a census as a tree.
    ///
    /// # Errors
    ///
    /// As [`take_census`](Self::take_census).
    pub fn take_census_tree(
        &mut self,
        path: &Path,
        breakdown: &Breakdown,
        options: &TreeOptions,
        progress: &Progress,
    ) -> Answer<CensusTree> {
        Ok(CensusTree::new(&self.take_census(path, breakdown, progress)?, options))
    }

    /// The difference from one snapshot to another.
    ///
    /// # Errors
    ///
    /// As [`take_census`](Self::take_census).
    pub fn take_census_diff(
        &mut self,
        first: &Path,
        second: &Path,
        breakdown: &Breakdown,
        progress: &Progress,
    ) -> Answer<CensusDifference> {
        let first = self.take_census(first, breakdown, progress)?;
        Ok(CensusDifference::new(&first, &self.take_census(second, breakdown, progress)?))
    }

    /// The nodes behind some leaves of a census tree, those that retain most first, at most `max`.
    ///
    /// # Errors
    ///
    /// As [`take_census`](Self::take_census).
    pub fn census_individuals(
        &mut self,
        path: &Path,
        breakdown: &Breakdown,
        leaves: &[u64],
        max: usize,
        progress: &Progress,
    ) -> Answer<Vec<NodeId>> {
        let tree = self.snapshot(path)?.dominators(progress)?;
        let nodes = individuals_watched(&tree, breakdown, |leaf| leaves.contains(&leaf), max, progress)?;
        Ok(nodes.into_iter().map(|node| node.id()).collect())
    }

    /// Computes the dominator tree and keeps it. The other methods compute it when they need it.
    ///
    /// # Errors
    ///
    /// [`WorkerError::NoSnapshot`] or [`WorkerError::Cancelled`].
    pub fn compute_dominator_tree(&mut self, path: &Path, progress: &Progress) -> Answer<()> {
        self.snapshot(path)?.dominators(progress)?;
        Ok(())
    }

    /// The top of the dominator tree.
    ///
    /// # Errors
    ///
    /// As [`take_census`](Self::take_census), for the census of the label.
    pub fn dominator_tree(
        &mut self,
        path: &Path,
        options: &FetchOptions,
        progress: &Progress,
    ) -> Answer<DominatorTreeNode> {
        let tree = self.snapshot(path)?.dominators(progress)?;
        tree.prepare_lists(progress)?;
        Ok(tree.partial(NodeIndex::ROOT, options)?)
    }

    /// At most `count` children of a node of the dominator tree, from the one at place `start` on.
    ///
    /// # Errors
    ///
    /// [`WorkerError::NoNode`] and [`WorkerError::NotReachable`], or as
    /// [`dominator_tree`](Self::dominator_tree).
    pub fn immediately_dominated(
        &mut self,
        path: &Path,
        node: NodeId,
        start: usize,
        count: usize,
        options: &FetchOptions,
        progress: &Progress,
    ) -> Answer<FetchedChildren> {
        let tree = self.snapshot(path)?.dominators(progress)?;
        let index = tree.graph().find(node).ok_or(WorkerError::NoNode(node))?.index();
        if !tree.is_reachable(index) {
            return Err(WorkerError::NotReachable(node));
        }
        tree.prepare_lists(progress)?;
        Ok(tree.fetch(index, start, count, options)?)
    }

    /// Up to `max` paths from the root to each target, as [`shortest_paths`](crate::shortest_paths) finds them.
    ///
    /// # Errors
    ///
    /// [`WorkerError::NoSnapshot`], [`WorkerError::NoNode`] or [`WorkerError::Cancelled`].
    pub fn shortest_paths(
        &mut self,
        path: &Path,
        targets: &[NodeId],
        max: usize,
        progress: &Progress,
    ) -> Answer<ShortestPaths<'static>> {
        let graph = &self.snapshot(path)?.graph;
        let find = |id: &NodeId| Ok(graph.find(*id).ok_or(WorkerError::NoNode(*id))?.index());
        let targets = targets.iter().map(find).collect::<Answer<Vec<_>>>()?;
        Ok(shortest_paths_watched(graph, NodeIndex::ROOT, &targets, max, progress)?.into_owned())
    }
}
