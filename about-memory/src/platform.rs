//! Sockets, processes and signals of the operating system: the only module that names one.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unknown;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use unknown::*;

/// Why a connection to a socket failed.
#[derive(Debug)]
#[allow(dead_code, reason = "other systems do not make these")]
pub(crate) enum ConnectError {
    /// The file is not a socket, or belongs to another user.
    Foreign,
    /// No process listens on the socket.
    Refused,
    /// The queue of connections is full: the process has not accepted any for long.
    Crowded,
    Io(std::io::Error),
}

/// A process that was found without a request to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunningProgram {
    pub(crate) pid: u32,
    pub(crate) name: String,
}
