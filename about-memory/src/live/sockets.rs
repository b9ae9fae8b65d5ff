//! The sockets of listening processes.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::platform;

use super::error::LiveError;

/// A socket of this age is no longer new. A process needs much less time between creating a socket and listening on it.
const SETTLED: Duration = Duration::from_secs(10);

/// A socket in the folder. Its process may have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SocketFile {
    pub(super) pid: u32,
    /// The time at which the process started, in clock ticks since the start of the system.
    pub(super) start: u64,
    pub(super) path: PathBuf,
}

impl SocketFile {
    fn parse(path: PathBuf) -> Option<Self> {
        let (pid, start) = path.file_name()?.to_str()?.strip_suffix(".sock")?.split_once('-')?;
        Some(Self { pid: pid.parse().ok()?, start: start.parse().ok()?, path })
    }

    /// Removes a socket that refused a connection if its process has ended or has become another program. A new socket
    /// stays: its process may not listen on it yet. Returns whether the socket is stale.
    pub(super) fn remove_if_stale(&self) -> bool {
        let is_old = || {
            let made = fs::symlink_metadata(&self.path).and_then(|found| found.modified());
            made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > SETTLED))
        };
        let stale = !platform::is_running(self.pid, self.start) || is_old();
        if stale {
            // Another process may have removed it at the same time.
            let _ = fs::remove_file(&self.path);
        }
        stale
    }
}

/// Returns all sockets of this user except the socket of this process, sorted by process id. Returns an empty list if
/// the folder does not exist.
pub(super) fn sockets() -> Result<Vec<SocketFile>, LiveError> {
    let folder = memory_reporter::live::folder().map_err(LiveError::Folder)?;
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(LiveError::Folder(memory_reporter::live::ListenError::Io(folder, error))),
    };
    let mut sockets: Vec<_> = entries
        .flatten()
        .filter_map(|entry| SocketFile::parse(entry.path()))
        .filter(|socket| socket.pid != std::process::id())
        .collect();
    sockets.sort_by_key(|socket| (socket.pid, socket.start));
    Ok(sockets)
}

/// Returns the socket of each of these processes, in the same order; `None` for a process without a socket.
pub(super) fn sockets_of(pids: &[u32]) -> Result<Vec<Option<SocketFile>>, LiveError> {
    let all = sockets()?;
    // The system reuses process ids. If several sockets have the same id, only the latest can be of a running process.
    let of = |pid: &u32| all.iter().rev().find(|socket| socket.pid == *pid).cloned();
    Ok(pids.iter().map(of).collect())
}
