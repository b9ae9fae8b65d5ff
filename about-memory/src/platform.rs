//! Other processes as the operating system shows them: the only module that names one.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unknown;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use unknown::*;

/// Why a socket was not connected to.
#[derive(Debug)]
#[allow(dead_code, reason = "not every system has sockets")]
pub(crate) enum ConnectError {
    /// It is no socket, or not this user's.
    Foreign,
    /// Nobody listens on it.
    Refused,
    /// Whoever listens has not looked at those who came before for long.
    Crowded,
    Io(std::io::Error),
}

/// A process found without asking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) pid: u32,
    pub(crate) name: String,
}
