//! The session: the interface for front ends.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use heap_graph::snapshot::{SnapshotReadOptions, read_watched};
use heap_graph::{AnalysisProgress, Graph};
#[cfg(feature = "serve")]
use tempfile::TempDir;
use tempfile::{Builder, NamedTempFile, TempPath};

use super::compute::TaskKey;
use super::engine::TaskEngine;
use super::error::SessionError;
use super::event::EventLog;
#[cfg(feature = "serve")]
use super::event::EventSubject;
use super::id::{JobId, SnapshotId};
use super::jobs::{RunningJobs, SessionJob};
use super::pending::{PendingAnswer, PendingState};
use super::query::Query;
use super::snapshots::{SessionSnapshots, SnapshotFile, SnapshotInfo};
use super::state::SnapshotState;
use crate::temporary;

/// A dominator tree takes at least this many bytes of the cache for each node.
const TREE_BYTES: usize = 16;
/// The walk that all paths share takes this many bytes of the cache for each node.
const WALK_BYTES: usize = 8;
/// The bytes per node of the default budget: for the tree, the walk, and rows.
const BUDGET_BYTES: usize = 32;
const LEAST_BUDGET: usize = 64 << 20;

/// The limits of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionOptions {
    pub(crate) budget: Option<usize>,
    pub(crate) max_snapshots: usize,
    pub(crate) max_jobs: usize,
    pub(crate) max_events: usize,
    /// The limits for reading a snapshot. Snapshots are not trusted.
    pub read: SnapshotReadOptions,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            budget: None,
            max_snapshots: 100,
            max_jobs: 32,
            max_events: 10_000,
            read: SnapshotReadOptions::default(),
        }
    }
}

impl SessionOptions {
    /// Options with all defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the approximate maximum number of bytes of stored results, without the graphs. The latest result stays even
    /// if it alone is larger. Default: 64 MiB, or 32 bytes for each node of the largest snapshot if this is more, so
    /// that the dominator tree and the walk for paths fit.
    #[must_use]
    pub fn budget(self, bytes: usize) -> Self {
        Self { budget: Some(bytes), ..self }
    }

    /// Sets the maximum number of snapshots. Default: 100.
    #[must_use]
    pub fn max_snapshots(self, snapshots: usize) -> Self {
        Self { max_snapshots: snapshots, ..self }
    }

    /// Sets the maximum number of computations at the same time. Default: 32.
    #[must_use]
    pub fn max_jobs(self, jobs: usize) -> Self {
        Self { max_jobs: jobs, ..self }
    }

    /// Sets the number of events that are kept for front ends that connect later. Default: 10,000.
    #[must_use]
    pub fn max_events(self, events: usize) -> Self {
        Self { max_events: events, ..self }
    }
}

/// Snapshots, their results, and the running computations. Clones share one session.
///
/// ```
/// use about_memory::session::{Session, SessionOptions, SnapshotState};
///
/// let session = Session::new(SessionOptions::new());
/// let id = session.open("no-such-file.fxsnapshot".as_ref()).unwrap();
/// session.wait_until_read(id);
/// let snapshots = session.snapshots();
/// assert_eq!(snapshots[0].state, SnapshotState::Error("not found".to_owned()));
/// assert!(session.remove(id));
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    pub(super) engine: Arc<TaskEngine>,
    read: SnapshotReadOptions,
    /// Whether the budget grows with the size of the snapshots.
    budget_grows: bool,
}

impl Session {
    /// Creates a session without snapshots.
    pub fn new(options: SessionOptions) -> Self {
        let events = EventLog::new(options.max_events);
        let budget = options.budget.unwrap_or(LEAST_BUDGET);
        let engine = TaskEngine::new(options.max_snapshots, options.max_jobs, budget, events);
        Self { engine: Arc::new(engine), read: options.read, budget_grows: options.budget.is_none() }
    }

    fn snapshots_(&self) -> &SessionSnapshots {
        &self.engine.snapshots
    }

    /// Opens a user's file and reads it on another thread. The file stays when the snapshot is removed.
    ///
    /// # Errors
    ///
    /// Returns [`SessionError::Full`] if the session has its maximum number of snapshots. If the file cannot be read,
    /// the call succeeds, and the snapshot gets the state [`SnapshotState::Error`].
    pub fn open(&self, path: &Path) -> Result<SnapshotId, SessionError> {
        let title = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let title = title.strip_suffix(".fxsnapshot").unwrap_or(&title).to_owned();
        let progress = AnalysisProgress::new();
        let source = SnapshotFile::File(path.to_owned());
        let id = self.snapshots_().add(&title, SnapshotState::Saved, source, &progress)?;
        let session = self.clone();
        self.on_a_thread(id, move || session.read_now(id, &progress));
        Ok(id)
    }

    /// Takes a snapshot on another thread: `save` writes a file at the path that it gets, and then the session reads
    /// the file. The file is removed with the snapshot.
    ///
    /// # Errors
    ///
    /// Returns [`SessionError::Full`] if the session has its maximum number of snapshots. If `save` fails, the call
    /// succeeds, and the snapshot gets the state [`SnapshotState::Error`].
    pub fn take(
        &self,
        title: &str,
        save: impl FnOnce(&Path) -> Result<(), String> + Send + 'static,
    ) -> Result<SnapshotId, SessionError> {
        let progress = AnalysisProgress::new();
        let id = self.snapshots_().add(title, SnapshotState::Saving, SnapshotFile::None, &progress)?;
        let session = self.clone();
        self.on_a_thread(id, move || {
            let saved = session.temporary().map_err(|error| error.to_string()).and_then(|path| {
                save(&path)?;
                Ok(path)
            });
            match saved {
                Ok(path) => {
                    if session.snapshots_().advance(
                        id,
                        SnapshotState::Saved,
                        Some(SnapshotFile::Temporary(path)),
                    ) {
                        session.read_now(id, &progress);
                    }
                }
                Err(reason) => session.snapshots_().fail(id, &reason),
            }
        });
        Ok(id)
    }

    /// Imports a snapshot that a front end sends. Copies it on this thread, and reads the copy on another thread.
    ///
    /// # Errors
    ///
    /// Returns [`SessionError::Full`] if the session has its maximum number of snapshots. Returns
    /// [`SessionError::Failed`] if the copy fails; the snapshot then also gets the state [`SnapshotState::Error`].
    pub fn import(&self, title: &str, from: &mut dyn Read) -> Result<SnapshotId, SessionError> {
        let progress = AnalysisProgress::new();
        let id = self.snapshots_().add(title, SnapshotState::Importing, SnapshotFile::None, &progress)?;
        let copied = self.temporary().and_then(|path| {
            // Stops copying when the import is cancelled.
            io::copy(
                &mut CancellableReader { from, progress: &progress },
                &mut temporary::private_file(&path)?,
            )?;
            Ok(path)
        });
        match copied {
            Ok(path) => {
                let source = Some(SnapshotFile::Temporary(path));
                if self.snapshots_().advance(id, SnapshotState::Reading, source) {
                    let session = self.clone();
                    self.on_a_thread(id, move || session.read_graph(id, &progress));
                }
                Ok(id)
            }
            Err(error) => {
                let reason = format!("cannot be imported: {error}");
                self.snapshots_().fail(id, &reason);
                Err(SessionError::Failed(reason))
            }
        }
    }

    /// Adds a graph of this process as a snapshot. The snapshot has the state `Read` and no file.
    ///
    /// # Errors
    ///
    /// Returns [`SessionError::Full`] if the session has its maximum number of snapshots.
    pub fn insert(&self, title: &str, graph: Graph) -> Result<SnapshotId, SessionError> {
        let state = SnapshotState::Reading;
        let id = self.snapshots_().add(title, state, SnapshotFile::None, &AnalysisProgress::new())?;
        self.fill(id, Arc::new(graph));
        Ok(id)
    }

    fn fill(&self, id: SnapshotId, graph: Arc<Graph>) {
        if self.budget_grows {
            self.engine.cache.raise_budget(graph.node_count().saturating_mul(BUDGET_BYTES));
        }
        self.snapshots_().fill(id, graph);
    }

    /// Runs `work` for a snapshot on another thread. If `work` panics, the snapshot fails.
    fn on_a_thread(&self, id: SnapshotId, work: impl FnOnce() + Send + 'static) {
        let session = self.clone();
        let watched = move || {
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                session.snapshots_().fail(id, "the program has a defect: saving or reading panicked");
            }
        };
        if let Err(error) = thread::Builder::new().name("session".to_owned()).spawn(watched) {
            self.snapshots_().fail(id, &format!("no thread can be started: {error}"));
        }
    }

    /// Creates a file of this session that only this user can read.
    fn temporary(&self) -> io::Result<TempPath> {
        let named =
            |folder: &Path| Builder::new().prefix("about-memory-").suffix(".fxsnapshot").tempfile_in(folder);
        self.engine.files.with(named).map(NamedTempFile::into_temp_path)
    }

    /// Creates a folder of this session for files that a front end receives. The folder is removed when the guard is
    /// dropped, or with the session.
    #[cfg(feature = "serve")]
    pub(crate) fn folder(&self) -> io::Result<TempDir> {
        self.engine.files.with(|folder| temporary::private_folder("", folder))
    }

    fn read_now(&self, id: SnapshotId, progress: &AnalysisProgress) {
        if self.snapshots_().advance(id, SnapshotState::Reading, None) {
            self.read_graph(id, progress);
        }
    }

    fn read_graph(&self, id: SnapshotId, progress: &AnalysisProgress) {
        let Ok(path) = self.snapshots_().path(id) else { return };
        let job = self.engine.jobs.next();
        // An accepted snapshot is read even if many queries run.
        self.engine.jobs.add(job, "read", progress, usize::MAX);
        let running = JobEnd(&self.engine.jobs, job);
        let read = read_watched(&path, &self.read, progress);
        drop(running);
        match read {
            Ok(graph) => self.fill(id, Arc::new(graph)),
            Err(error) => self.snapshots_().fail(id, &error.to_string()),
        }
    }

    /// Waits until a snapshot is read, has failed or is removed.
    pub fn wait_until_read(&self, id: SnapshotId) {
        loop {
            let seq = self.engine.events.last();
            let is_busy = |info: &SnapshotInfo| {
                info.id == id && !matches!(info.state, SnapshotState::Read | SnapshotState::Error(_))
            };
            if !self.snapshots().iter().any(is_busy) {
                return;
            }
            self.engine.events.wait(seq, core::time::Duration::from_secs(1));
        }
    }

    /// Returns all snapshots, in the order of their numbers.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.snapshots_().list()
    }

    /// Removes a snapshot in any state, with all its results. Returns whether the session had the snapshot.
    pub fn remove(&self, id: SnapshotId) -> bool {
        let had = self.snapshots_().remove(id);
        self.engine.cache.forget(|key| key.is_about(id));
        self.engine.orders.forget(id);
        had
    }

    /// Returns the graph of a snapshot.
    ///
    /// # Errors
    ///
    /// Returns [`SessionError::NoSnapshot`] or [`SessionError::NotRead`].
    pub fn graph(&self, id: SnapshotId) -> Result<Arc<Graph>, SessionError> {
        self.snapshots_().graph(id)
    }

    /// Returns the file of a snapshot.
    ///
    /// # Errors
    ///
    /// Returns [`SessionError::NoSnapshot`], or [`SessionError::NotRead`] if the snapshot has no file.
    pub fn file(&self, id: SnapshotId) -> Result<PathBuf, SessionError> {
        self.snapshots_().path(id)
    }

    /// Asks a query. Equal queries share one computation.
    ///
    /// # Errors
    ///
    /// Returns [`SessionError::TooMuch`], [`SessionError::NoSnapshot`], [`SessionError::NotRead`],
    /// [`SessionError::Busy`], or [`SessionError::Failed`] if no thread can be started. All other errors are returned
    /// with the answer.
    pub fn ask(&self, query: Query) -> Result<PendingAnswer, SessionError> {
        if let Some((what, most)) = query.excess() {
            return Err(SessionError::TooMuch(what, most));
        }
        let snapshots = query.snapshots();
        for snapshot in &snapshots {
            self.graph(*snapshot)?;
        }
        let is_of_nodes = query.is_of_nodes();
        let pending = self.engine.ask(TaskKey::Query(query))?;
        if is_of_nodes {
            // The front end will probably ask for the paths to one of the nodes next, so the walk is prepared. The walk
            // is not prepared if the cache is too small for the answer and the walk together.
            for snapshot in snapshots {
                let nodes = self.graph(snapshot)?.node_count();
                let answer = match &pending.state {
                    PendingState::Done(answer) => answer.memory(),
                    PendingState::Running(..) => nodes * TREE_BYTES,
                };
                if answer + nodes * WALK_BYTES <= self.engine.cache.budget() {
                    self.engine.prepare(&TaskKey::Walk(snapshot));
                }
            }
        }
        Ok(pending)
    }

    /// Returns the running computations.
    pub fn jobs(&self) -> Vec<SessionJob> {
        self.engine.jobs.list()
    }

    /// Cancels a computation. Returns whether the computation was running.
    pub fn cancel(&self, job: JobId) -> bool {
        self.engine.jobs.cancel(job)
    }

    /// Returns the log of events.
    pub fn events(&self) -> &EventLog {
        &self.engine.events
    }

    /// Adds an event for a changed list that the front end keeps beside the session.
    #[cfg(feature = "serve")]
    pub(crate) fn list_changed(&self, list: &'static str) {
        self.engine.events.add(EventSubject::List, list, "changed", "");
    }

    /// Returns about how many bytes of memory the cached results take.
    pub fn memory(&self) -> usize {
        self.engine.cache.bytes()
    }

    /// Cancels all computations and ends all waiting for events.
    pub fn close(&self) {
        self.engine.jobs.cancel_all();
        self.engine.events.close();
    }

    /// Closes the session and removes all files that it wrote, including incomplete files. A program must call this at
    /// its end, because other threads may hold clones of the session at that time.
    pub fn end(&self) {
        self.close();
        self.engine.files.end();
    }
}

/// A reader of a snapshot that a front end sends. Reading fails after the snapshot is removed.
struct CancellableReader<'a> {
    from: &'a mut dyn Read,
    progress: &'a AnalysisProgress,
}

impl Read for CancellableReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.progress.is_cancelled() {
            true => Err(io::Error::other("it was removed")),
            false => self.from.read(into),
        }
    }
}

/// Ends a job when it is dropped, even after a panic.
struct JobEnd<'a>(&'a RunningJobs, JobId);

impl Drop for JobEnd<'_> {
    fn drop(&mut self) {
        self.0.remove(self.1);
    }
}
