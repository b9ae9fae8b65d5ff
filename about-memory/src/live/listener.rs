//! The listening processes, and their answers to `hello`.

use std::path::PathBuf;
use std::time::Duration;

use memory_reporter::live::{AmountsAnswer, HelloAnswer};

use super::ask;
use super::error::LiveError;
use super::sockets::{sockets, sockets_of};
use crate::platform;

/// A process with a socket.
#[derive(Debug)]
#[non_exhaustive]
pub struct ListeningProcess {
    /// The process id.
    pub pid: u32,
    /// The socket of the process.
    pub socket: PathBuf,
    /// The process's answer to `hello`, or the reason why it did not answer.
    pub hello: Result<HelloAnswer, LiveError>,
    /// The process's amounts. `None` unless [`list_with_amounts`] requested them and the process answered.
    pub amounts: Option<AmountsAnswer>,
}

/// Returns all listening processes of this user except this process, sorted by process id. Requests all names at the
/// same time. All processes together have `timeout`, so processes that hang do not prolong the call. Removes the
/// sockets of ended processes.
///
/// # Errors
///
/// Returns an error if the folder of sockets is not private to the user or cannot be read.
pub fn list(timeout: Duration) -> Result<Vec<ListeningProcess>, LiveError> {
    listeners(false, timeout)
}

/// Like [`list`], but also requests amounts that need no collection. Both answers of all processes together have
/// `timeout`.
///
/// # Errors
///
/// Returns the same errors as [`list`].
pub fn list_with_amounts(timeout: Duration) -> Result<Vec<ListeningProcess>, LiveError> {
    listeners(true, timeout)
}

/// Whether a process with this id exists.
pub fn is_running(pid: u32) -> bool {
    platform::process_name(pid).is_some()
}

/// Returns the name and other facts of a process.
///
/// # Errors
///
/// Returns an error if the process does not listen, refuses, speaks another version of the protocol, or takes longer
/// than `timeout`.
pub fn hello(pid: u32, timeout: Duration) -> Result<HelloAnswer, LiveError> {
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    ask::hello(&socket.path, timeout)
}

fn listeners(also_amounts: bool, timeout: Duration) -> Result<Vec<ListeningProcess>, LiveError> {
    let sockets = sockets()?;
    let answers = ask::hellos(&sockets, also_amounts, timeout);
    let listeners = sockets.into_iter().zip(answers).filter_map(|(socket, (hello, amounts))| {
        if matches!(hello, Err(LiveError::NotListening)) && socket.remove_if_stale() {
            return None;
        }
        Some(ListeningProcess { pid: socket.pid, socket: socket.path, hello, amounts })
    });
    Ok(listeners.collect())
}
