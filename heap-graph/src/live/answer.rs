//! Sends snapshots of this process to programs that request them through its socket.

use std::io::{self, BufWriter, Seek as _};
use std::sync::{Mutex, PoisonError};

use memory_reporter::live::{AnswerGuard, answer_requests};

use super::HeapGraph;
use super::options::LiveGraphOptions;
use super::roots::Roots;
use crate::snapshot::SnapshotWriteOptions;

/// The name of the request for a snapshot.
pub const SNAPSHOT_REQUEST: &str = "heap-snapshot";

/// Answers `about-memory snapshot save PID` with a snapshot of the values that `add_roots` adds, in the format of
/// [`HeapGraph::save`]. The program must listen ([`memory_reporter::listen`]).
///
/// `add_roots` runs on a thread of the listener, for one peer at a time. Locks that it takes are held only during the
/// walk: the snapshot first goes to a temporary file, so that a slow peer does not delay other requests.
///
/// ```
/// use std::sync::Mutex;
///
/// static INDEX: Mutex<Vec<String>> = Mutex::new(Vec::new());
///
/// heap_graph::answer_snapshots(|roots| roots.add("index", &INDEX)).forever();
/// ```
pub fn answer_snapshots(add_roots: impl Fn(&mut Roots<'_>) + Send + Sync + 'static) -> AnswerGuard {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    answer_requests(SNAPSHOT_REQUEST, move |_, out| {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // The file has no name, so no other user can open it. The system removes it when it is closed.
        let mut file = tempfile::tempfile()?;
        let mut buffered = BufWriter::new(&mut file);
        HeapGraph::stream(&mut buffered, LiveGraphOptions::new(), &SnapshotWriteOptions::new(), &add_roots)?;
        buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
        drop(alone);
        file.rewind()?;
        io::copy(&mut file, out).map(drop)
    })
}
