//! The snapshots of a session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heap_graph::{AnalysisProgress, Graph};
use tempfile::TempPath;

use super::error::SessionError;
use super::event::{EventLog, EventSubject};
use super::id::SnapshotId;
use super::state::SnapshotState;

/// The facts about a snapshot, for display.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// The number of the snapshot.
    pub id: SnapshotId,
    /// The name of the snapshot's file or process.
    pub title: String,
    /// The state of the snapshot.
    pub state: SnapshotState,
    /// Whether a front end sent the file.
    pub is_imported: bool,
    /// The time at which the snapshot was taken, in microseconds since 1970 UTC. `None` if the snapshot is not read
    /// yet, or the time is unknown.
    pub creation_time: Option<u64>,
    /// The number of nodes, including the root; 0 before the snapshot is read.
    pub nodes: usize,
    /// The number of edges; 0 before the snapshot is read.
    pub edges: usize,
    /// The bytes of all nodes; 0 before the snapshot is read.
    pub bytes: u128,
}

/// The file of a snapshot.
#[derive(Debug)]
pub(super) enum SnapshotFile {
    /// The user's file. It is not removed with the snapshot.
    File(PathBuf),
    /// A file of this session. It is removed with the snapshot.
    Temporary(TempPath),
    /// No file.
    None,
}

#[derive(Debug)]
struct SnapshotEntry {
    info: SnapshotInfo,
    source: SnapshotFile,
    graph: Option<Arc<Graph>>,
    /// Cancels the saving, importing or reading of the snapshot when it is removed.
    progress: AnalysisProgress,
}

#[derive(Debug, Default)]
struct SnapshotList {
    last: u32,
    held: BTreeMap<SnapshotId, SnapshotEntry>,
}

#[derive(Debug)]
pub(super) struct SessionSnapshots {
    all: Mutex<SnapshotList>,
    most: usize,
    events: Arc<EventLog>,
}

impl SessionSnapshots {
    pub(super) fn new(most: usize, events: Arc<EventLog>) -> Self {
        Self { all: Mutex::default(), most, events }
    }

    fn all(&self) -> MutexGuard<'_, SnapshotList> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, id: SnapshotId, state: &SnapshotState) {
        let message = state.error().unwrap_or_default();
        self.events.add(EventSubject::Snapshot(id), "snapshot", state.name(), message);
    }

    pub(super) fn add(
        &self,
        title: &str,
        state: SnapshotState,
        source: SnapshotFile,
        progress: &AnalysisProgress,
    ) -> Result<SnapshotId, SessionError> {
        let mut all = self.all();
        if all.held.len() >= self.most {
            return Err(SessionError::Full(self.most));
        }
        all.last += 1;
        let id = SnapshotId(all.last);
        let info = SnapshotInfo {
            id,
            title: title.to_owned(),
            is_imported: state == SnapshotState::Importing,
            state: state.clone(),
            creation_time: None,
            nodes: 0,
            edges: 0,
            bytes: 0,
        };
        all.held.insert(id, SnapshotEntry { info, source, graph: None, progress: progress.clone() });
        self.tell(id, &state);
        Ok(id)
    }

    /// Changes the state of a snapshot. Returns whether the session still has the snapshot.
    pub(super) fn advance(&self, id: SnapshotId, next: SnapshotState, source: Option<SnapshotFile>) -> bool {
        let mut all = self.all();
        let Some(held) = all.held.get_mut(&id) else { return false };
        if let Some(source) = source {
            held.source = source;
        }
        assert!(held.info.state.may_become(&next), "{:?} does not become {next:?}", held.info.state);
        held.info.state = next;
        self.tell(id, &held.info.state);
        true
    }

    /// Sets the state to failed, unless the snapshot has failed before or was removed.
    pub(super) fn fail(&self, id: SnapshotId, reason: &str) {
        let state = SnapshotState::Error(reason.to_owned());
        let may = self.all().held.get(&id).is_some_and(|held| held.info.state.may_become(&state));
        if may {
            self.advance(id, state, None);
        }
    }

    /// Stores the graph of a snapshot that has been read.
    pub(super) fn fill(&self, id: SnapshotId, graph: Arc<Graph>) {
        let bytes = graph.nodes().map(|node| u128::from(node.shallow_size())).sum();
        {
            let mut all = self.all();
            let Some(held) = all.held.get_mut(&id) else { return };
            let info = &mut held.info;
            (info.nodes, info.edges, info.bytes) = (graph.node_count(), graph.edge_count(), bytes);
            info.creation_time = graph.creation_time();
            held.graph = Some(graph);
        }
        self.advance(id, SnapshotState::Read, None);
    }

    pub(super) fn graph(&self, id: SnapshotId) -> Result<Arc<Graph>, SessionError> {
        let all = self.all();
        let held = all.held.get(&id).ok_or(SessionError::NoSnapshot(id))?;
        held.graph.clone().ok_or(SessionError::NotRead(id, held.info.state.name()))
    }

    pub(super) fn path(&self, id: SnapshotId) -> Result<PathBuf, SessionError> {
        let all = self.all();
        let held = all.held.get(&id).ok_or(SessionError::NoSnapshot(id))?;
        match &held.source {
            SnapshotFile::File(path) => Ok(path.clone()),
            SnapshotFile::Temporary(path) => Ok(path.to_path_buf()),
            SnapshotFile::None => Err(SessionError::NotRead(id, held.info.state.name())),
        }
    }

    pub(super) fn remove(&self, id: SnapshotId) -> bool {
        let held = self.all().held.remove(&id);
        if let Some(held) = &held {
            held.progress.cancel();
            self.events.add(EventSubject::Snapshot(id), "snapshot", "removed", "");
        }
        held.is_some()
    }

    pub(super) fn list(&self) -> Vec<SnapshotInfo> {
        self.all().held.values().map(|held| held.info.clone()).collect()
    }
}
