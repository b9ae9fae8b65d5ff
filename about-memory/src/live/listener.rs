//! The listening processes, and their answers to `hello`.

use std::path::PathBuf;
use std::time::Duration;

use memory_reporter::live::Hello;

use super::ask::{self, in_parallel};
use super::error::LiveError;
use super::sockets::sockets;

/// A process with a socket.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listener {
    /// The process id.
    pub pid: u32,
    /// Its socket.
    pub socket: PathBuf,
    /// The process's answer to `hello`, or the reason why it did not answer.
    pub hello: Result<Hello, LiveError>,
}

/// All listening processes of this user, sorted by process id. Each has `timeout` to answer. Removes the sockets of
/// processes that have ended.
///
/// # Errors
///
/// If the folder of sockets is not private to the user or cannot be read.
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
