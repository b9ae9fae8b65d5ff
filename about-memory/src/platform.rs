//! Sockets, processes and signals of the operating system. Other modules depend on the operating system only for the
//! modes of files.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unknown;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use unknown::*;

/// The reason why a connection to a socket failed.
#[derive(Debug)]
#[allow(dead_code, reason = "only Linux makes these errors")]
pub(crate) enum ConnectError {
    /// The file is not a socket, or belongs to another user.
    Foreign,
    /// No process listens on the socket.
    Refused,
    /// The queue of connections is full, because the process has not accepted connections for a long time.
    Crowded,
    Io(std::io::Error),
}

/// A process that was found in the system, without a request to the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunningProgram {
    pub(crate) pid: u32,
    pub(crate) name: String,
}
