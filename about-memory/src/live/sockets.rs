//! Which processes listen.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use memory_reporter::live::Hello;

use crate::platform;

use super::ask::{self, in_parallel};
use super::error::LiveError;

/// Much longer than it takes from making a socket to listening on it.
const SETTLED: Duration = Duration::from_secs(10);

/// A socket as found in the folder; nobody was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) pid: u32,
    /// When the process started, in clock ticks.
    pub(super) start: u64,
    pub(super) path: PathBuf,
}

impl Socket {
    fn of(path: PathBuf) -> Option<Self> {
        let (pid, start) = path.file_name()?.to_str()?.strip_suffix(".sock")?.split_once('-')?;
        Some(Self { pid: pid.parse().ok()?, start: start.parse().ok()?, path })
    }

    /// Removes a socket that refused to connect, if nobody will ever listen on it: its process has
    /// ended, or has become another program. A process that has just made its own may not listen yet.
    pub(super) fn remove_if_stale(&self) -> bool {
        let is_old = || {
            let made = fs::symlink_metadata(&self.path).and_then(|found| found.modified());
            made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > SETTLED))
        };
        let stale = !platform::is_running(self.pid, self.start) || is_old();
        if stale {
            // Somebody else may have done so at the same time.
            let _ = fs::remove_file(&self.path);
        }
        stale
    }
}

/// All sockets of this user but this process's own, by number. No folder means no sockets.
pub(super) fn sockets() -> Result<Vec<Socket>, LiveError> {
    let folder = memory_reporter::live::folder().map_err(LiveError::Folder)?;
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(LiveError::Folder(memory_reporter::ListenError::Io(folder, error))),
    };
    let mut sockets: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Socket::of(entry.path()))
        .filter(|socket| socket.pid != std::process::id())
        .collect();
    sockets.sort_by_key(|socket| (socket.pid, socket.start));
    Ok(sockets)
}

/// The sockets of these processes: one for each, in the same order, `None` if there is none.
pub(super) fn sockets_of(pids: &[u32]) -> Result<Vec<Option<Socket>>, LiveError> {
    let all = sockets()?;
    // The number may have been used before; the last one to start is it.
    let of = |pid: &u32| all.iter().rev().find(|socket| socket.pid == *pid).cloned();
    Ok(pids.iter().map(of).collect())
}

/// A process that listens, or should.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listener {
    /// The process's number.
    pub pid: u32,
    /// Its socket.
    pub socket: PathBuf,
    /// What it says of itself, or why it says nothing.
    pub hello: Result<Hello, LiveError>,
}

/// All processes of this user that listen, by number; each has `timeout` to answer. Sockets of
/// processes that have ended without removing theirs are removed.
///
/// # Errors
///
/// If the folder of sockets is not private to the user, or cannot be read.
pub fn list(timeout: Duration) -> Result<Vec<Listener>, LiveError> {
    let sockets = sockets()?;
    let answers = in_parallel(&sockets, |socket| ask::hello(&socket.path, timeout));
    let listeners = sockets.into_iter().zip(answers).filter_map(|(socket, hello)| {
        if matches!(hello, Err(LiveError::NotListening)) && socket.remove_if_stale() {
            return None;
        }
        Some(Listener { pid: socket.pid, socket: socket.path, hello })
    });
    Ok(listeners.collect())
}
