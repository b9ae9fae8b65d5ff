//! The listening processes, and their answers to `hello`.

use std::path::PathBuf;
use std::time::Duration;

use memory_reporter::live::{AmountsAnswer, HelloAnswer};

use super::ask;
use super::error::LiveError;
use super::sockets::{sockets, sockets_of};

/// A process with a socket.
#[derive(Debug)]
#[non_exhaustive]
pub struct ListeningProcess {
    /// The process id.
    pub pid: u32,
    /// Its socket.
    pub socket: PathBuf,
    /// The process's answer to `hello`, or the reason why it did not answer.
    pub hello: Result<HelloAnswer, LiveError>,
    /// Its amounts, if [`list_with_amounts`] asked for them and it answered.
    pub amounts: Option<AmountsAnswer>,
}

/// All listening processes of this user, sorted by process id. They are asked at the same time, and have `timeout` together:
/// the call takes no longer, however many hang. Removes the sockets of processes that have ended.
///
/// # Errors
///
/// If the folder of sockets is not private to the user or cannot be read.
pub fn list(timeout: Duration) -> Result<Vec<ListeningProcess>, LiveError> {
    listeners(false, timeout)
}

/// As [`list`], and with amounts that cost the processes no collection. Both answers of all processes have `timeout`
/// together.
///
/// # Errors
///
/// As [`list`].
pub fn list_with_amounts(timeout: Duration) -> Result<Vec<ListeningProcess>, LiveError> {
    listeners(true, timeout)
}

/// Who a process is.
///
/// # Errors
///
/// If the process does not listen, refuses, speaks another version of the protocol, or takes longer than `timeout`.
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
