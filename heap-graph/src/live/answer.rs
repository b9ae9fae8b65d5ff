//! Snapshots of this process for whoever asks through its socket.

use std::io::{self, BufWriter, Seek as _};
use std::sync::{Mutex, PoisonError};

use memory_reporter::live::{Answering, answer_requests};

use super::{HeapGraph, LiveOptions, Roots};
use crate::snapshot::WriteOptions;

/// The request that is answered with a snapshot.
pub const SNAPSHOT_REQUEST: &str = "heap-snapshot";

/// Has the program answer `about-memory snapshot save PID` with the values that `tell` adds, as
/// [`HeapGraph::save`] does, once it listens ([`memory_reporter::listen`]).
///
/// `tell` runs on a thread of the listener, for one peer at a time, and what it holds it holds for the walk
/// only: the snapshot goes to a temporary file first, however slowly the peer reads.
///
/// ```
/// use std::sync::Mutex;
///
/// static INDEX: Mutex<Vec<String>> = Mutex::new(Vec::new());
///
/// heap_graph::answer_snapshots(|roots| roots.add("index", &INDEX)).forever();
/// ```
pub fn answer_snapshots(tell: impl Fn(&mut Roots<'_>) + Send + Sync + 'static) -> Answering {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    answer_requests(SNAPSHOT_REQUEST, move |_, out| {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody else can open it, and it is gone when it is closed.
        let mut file = tempfile::tempfile()?;
        let mut buffered = BufWriter::new(&mut file);
        HeapGraph::stream(&mut buffered, LiveOptions::new(), &WriteOptions::new(), &tell)?;
        buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
        drop(alone);
        file.rewind()?;
        io::copy(&mut file, out).map(drop)
    })
}
