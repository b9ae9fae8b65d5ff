//! Snapshots of this process for programs that ask through its socket.

use std::io::{self, BufWriter, Seek as _};
use std::sync::{Mutex, PoisonError};

use memory_reporter::live::{AnswerGuard, answer_requests};

use super::HeapGraph;
use super::options::LiveGraphOptions;
use super::roots::Roots;
use crate::snapshot::SnapshotWriteOptions;

/// The request that the program answers with a snapshot.
pub const SNAPSHOT_REQUEST: &str = "heap-snapshot";

/// Makes the program answer `about-memory snapshot save PID` with a snapshot of the values that `add_roots` adds, as
/// [`HeapGraph::save`] writes it, once the program listens ([`memory_reporter::listen`]).
///
/// `add_roots` runs on a thread of the listener, for one peer at a time. Locks that it takes are held for the walk only:
/// the snapshot goes to a temporary file first, so that a slow peer does not hold up other requests.
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
        // The file has no name that somebody else could open, and the system removes it when it is closed.
        let mut file = tempfile::tempfile()?;
        let mut buffered = BufWriter::new(&mut file);
        HeapGraph::stream(&mut buffered, LiveGraphOptions::new(), &SnapshotWriteOptions::new(), &add_roots)?;
        buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
        drop(alone);
        file.rewind()?;
        io::copy(&mut file, out).map(drop)
    })
}
