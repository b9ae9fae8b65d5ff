//! Copies that processes make of themselves at moments when a request would come too late, such as a peak of the heap.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::ask;
use super::copy::ForkedProcess;
use super::error::LiveError;
use super::sockets::sockets_of;
use crate::platform::{CopyListener, wake_copy_listener};
use crate::temporary::TemporaryFolder;

/// The name of the socket in its folder.
const SOCKET: &str = "copies";

/// Keeps the last copy of the process with the largest heap. Every other copy ends.
#[derive(Debug)]
pub struct CopyKeeper {
    path: PathBuf,
    thread: JoinHandle<Option<KeptCopy>>,
    _folder: TemporaryFolder,
}

/// A copy of a process at the moment that DMD's options choose. The process may have ended since.
#[derive(Debug)]
#[non_exhaustive]
pub struct KeptCopy {
    /// The copy.
    pub copy: ForkedProcess,
    /// The process id of the copied process.
    pub process: u32,
    /// The bytes of the process's heap, as DMD's peak counts them.
    pub bytes: u64,
    /// The time from the start of the process to the copy.
    pub time: Duration,
}

impl CopyKeeper {
    /// Starts to wait for copies.
    ///
    /// # Errors
    ///
    /// Returns an error if the socket or the thread cannot be made.
    pub fn start() -> io::Result<Self> {
        let folder = TemporaryFolder::new()?;
        let path = folder.path().join(SOCKET);
        let listener = CopyListener::bind(&path)?;
        let thread = thread::Builder::new().name("copies".to_owned()).spawn(move || keep(&listener))?;
        Ok(Self { path, thread, _folder: folder })
    }

    /// The socket, for DMD's option `--copy-to`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stops waiting for copies, and returns the kept copy. Call this after the processes have ended.
    ///
    /// # Errors
    ///
    /// Returns an error if the socket was removed.
    pub fn end(self) -> io::Result<Option<KeptCopy>> {
        wake_copy_listener(&self.path)?;
        Ok(self.thread.join().unwrap_or_default())
    }
}

/// Keeps copies until this process itself connects to the socket.
fn keep(listener: &CopyListener) -> Option<KeptCopy> {
    let mut kept: Option<KeptCopy> = None;
    while let Ok(connected) = listener.accept() {
        let Some([process, bytes, milliseconds]) = connected.facts else {
            if connected.pid == std::process::id() {
                break;
            }
            continue;
        };
        let process = u32::try_from(process).unwrap_or_default();
        if kept.as_ref().is_none_or(|kept| kept.process == process || kept.bytes <= bytes) {
            kept = Some(KeptCopy {
                copy: ForkedProcess::connected(connected.pid, connected.connection),
                process,
                bytes,
                time: Duration::from_millis(milliseconds),
            });
        }
    }
    kept
}

/// Asks a process for a copy that its [`CopyKeeper`] keeps.
///
/// # Errors
///
/// Returns an error if the process does not listen, its version cannot make such copies, it refuses, or it takes longer
/// than `timeout`.
pub fn keep_copy(pid: u32, timeout: Duration) -> Result<(), LiveError> {
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    ask::keep_copy(&socket.path, timeout)
}
