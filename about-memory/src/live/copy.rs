//! Copies of running processes, whose memory does not change while somebody reads it.

use std::io::BufReader;
use std::time::Duration;

use crate::platform::DeadlineStream;

use super::ask;
use super::error::LiveError;
use super::save;
use super::sockets::sockets_of;

/// A copy of a process, as a fork makes it, until this is dropped. The process itself goes on.
#[derive(Debug)]
pub struct ForkedProcess {
    pid: u32,
    /// The process ends the copy when this connection ends.
    _connection: BufReader<DeadlineStream>,
}

impl ForkedProcess {
    /// Lets a process that DMD records make a copy of itself, for which it stands still for about 30 ms a gigabyte.
    ///
    /// # Errors
    ///
    /// If the process does not listen, DMD does not record it, its version cannot do so, it refuses, or it takes longer
    /// than `timeout`.
    pub fn take(pid: u32, timeout: Duration) -> Result<Self, LiveError> {
        let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
        let copied = ask::copy(&socket.path, timeout);
        let (pid, connection) =
            copied.map_err(|error| save::explained(&socket.path, save::COPY_REQUEST, error, timeout))?;
        Ok(Self { pid, _connection: connection })
    }

    /// The number of the copy.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}
