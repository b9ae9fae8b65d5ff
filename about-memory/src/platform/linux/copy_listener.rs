//! A socket to which the copies of processes connect.

use std::io::{self, Read as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// The time that a copy has to send its facts after it has connected.
const TIME_TO_SEND: Duration = Duration::from_secs(1);

/// The socket of a reader that keeps copies.
#[derive(Debug)]
pub(crate) struct CopyListener(UnixListener);

/// A connection to a copy. Dropping the connection ends the copy.
#[derive(Debug)]
#[allow(dead_code, reason = "held until it is dropped")]
pub(crate) struct CopyConnection(UnixStream);

/// A process that has connected, usually a copy.
#[derive(Debug)]
pub(crate) struct ConnectedCopy {
    pub(crate) connection: CopyConnection,
    /// The process id of the connected process.
    pub(crate) pid: u32,
    /// The process id of the copied process, the bytes of its heap, and the milliseconds from its start to the copy.
    /// `None` if the connected process is not a copy.
    pub(crate) facts: Option<[u64; 3]>,
}

impl CopyListener {
    /// Makes the socket. The folder of `path` decides who can connect.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        Ok(Self(UnixListener::bind(path)?))
    }

    /// Waits for the next copy, or for [`wake_copy_listener`].
    pub(crate) fn accept(&self) -> io::Result<ConnectedCopy> {
        let (mut stream, _) = self.0.accept()?;
        let pid = rustix::net::sockopt::socket_peercred(&stream)?.pid.as_raw_nonzero().get();
        let pid = u32::try_from(pid).map_err(io::Error::other)?;
        stream.set_read_timeout(Some(TIME_TO_SEND))?;
        let mut facts = [[0; 8]; 3];
        let read = stream.read_exact(facts.as_flattened_mut());
        let facts = read.is_ok().then(|| facts.map(u64::from_le_bytes));
        Ok(ConnectedCopy { connection: CopyConnection(stream), pid, facts })
    }
}

/// Makes `accept` return this process without facts, after all copies that have connected before.
pub(crate) fn wake_copy_listener(path: &Path) -> io::Result<()> {
    UnixStream::connect(path).map(drop)
}
