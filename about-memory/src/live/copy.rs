//! Copies of running processes. The memory of a copy does not change while it is read.

use std::io::BufReader;
use std::time::Duration;

#[cfg(feature = "program")]
use crate::platform::CopyConnection;
use crate::platform::DeadlineStream;

use super::ask;
use super::error::LiveError;
use super::save;
use super::sockets::sockets_of;

/// A copy of a process, made by a fork. The copy ends when this value is dropped. The process itself continues.
#[derive(Debug)]
pub struct ForkedProcess {
    pid: u32,
    _connection: HoldingConnection,
}

/// A connection that keeps the copy alive. The copy ends when the connection ends.
#[derive(Debug)]
#[allow(dead_code, reason = "held until it is dropped")]
enum HoldingConnection {
    /// The connection to the process.
    Process(BufReader<DeadlineStream>),
    /// The connection to the copy itself.
    #[cfg(feature = "program")]
    Copy(CopyConnection),
}

impl ForkedProcess {
    /// Lets a process that DMD records make a copy of itself. The process stops for about 30 ms per gigabyte while it
    /// is copied.
    ///
    /// # Errors
    ///
    /// Returns an error if the process does not listen, DMD does not record it, its version cannot make copies, it
    /// refuses, or it takes longer than `timeout`.
    pub fn take(pid: u32, timeout: Duration) -> Result<Self, LiveError> {
        let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
        let copied = ask::copy(&socket.path, timeout);
        let (pid, connection) =
            copied.map_err(|error| save::explained(&socket.path, save::COPY_REQUEST, error, timeout))?;
        Ok(Self { pid, _connection: HoldingConnection::Process(connection) })
    }

    /// A copy that has connected by itself.
    #[cfg(feature = "program")]
    pub(super) fn connected(pid: u32, connection: CopyConnection) -> Self {
        Self { pid, _connection: HoldingConnection::Copy(connection) }
    }

    /// Returns the process id of the copy.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}
