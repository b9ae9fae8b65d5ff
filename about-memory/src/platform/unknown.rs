//! Unsupported systems: no sockets, no other processes.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use super::{ConnectError, RunningProgram};

/// A connection. This system has no connections.
#[derive(Debug)]
pub(crate) enum DeadlineStream {}

impl DeadlineStream {
    pub(crate) fn connect(_: &Path, _: Instant) -> Result<Self, ConnectError> {
        Err(ConnectError::Io(io::ErrorKind::Unsupported.into()))
    }

    pub(crate) fn allow(&mut self, _: Instant) {
        match *self {}
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }
}

pub(crate) fn is_own(_: &Metadata) -> bool {
    false
}

pub(crate) fn try_lock(_: &File) -> bool {
    false
}

pub(crate) fn process_name(_: u32) -> Option<String> {
    None
}

#[cfg(feature = "serve")]
pub(crate) fn memory_limit(_: u32) -> Option<u64> {
    None
}

pub(crate) fn is_running(_: u32, _: u64) -> bool {
    true
}

pub(crate) fn has_ended(_: u32, _: u64) -> bool {
    false
}

pub(crate) fn program_of(_: u32) -> Option<PathBuf> {
    None
}

pub(crate) fn descendants(_: u32) -> Vec<RunningProgram> {
    Vec::new()
}

pub(crate) fn folders_for_unpacked() -> Vec<PathBuf> {
    Vec::new()
}

pub(crate) fn unpack(_: &str, _: &[u8], _: &[PathBuf]) -> io::Result<PathBuf> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn is_executable(path: &Path) -> bool {
    path.is_file()
}

pub(crate) fn is_privileged(_: &Path) -> bool {
    false
}

pub(crate) fn run_to_end(_: &mut Command, _: impl FnOnce(u32)) -> io::Result<ExitStatus> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn end_by_signal(
    _: impl FnOnce() + Send + 'static,
    _: impl Fn() -> Duration + Send + 'static,
    _: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    Ok(())
}

pub(crate) fn ending_signal(_: ExitStatus) -> Option<i32> {
    None
}

pub(crate) fn end_like(status: ExitStatus) -> ExitCode {
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Ends one pending `accept` of a listener.
#[cfg(feature = "http")]
pub(crate) fn end_accept(listener: &std::net::TcpListener) {
    use std::net::{Ipv4Addr, TcpStream};
    // A listener without an address cannot accept connections.
    let _ = listener.local_addr().and_then(|mut address| {
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        TcpStream::connect_timeout(&address, Duration::from_secs(1))
    });
}

/// A Unix socket. This system has no Unix sockets.
#[cfg(feature = "http")]
#[derive(Debug)]
pub(crate) enum PrivateSocket {}

#[cfg(feature = "http")]
impl PrivateSocket {
    pub(crate) fn bind(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn accept(&self) -> io::Result<std::net::TcpStream> {
        match *self {}
    }

    pub(crate) fn wake(&self) {
        match *self {}
    }
}

/// A socket for copies of processes. This system does not support copies.
#[cfg(feature = "program")]
#[derive(Debug)]
pub(crate) enum CopyListener {}

/// A connection to a copy. This system does not support copies.
#[cfg(feature = "program")]
#[derive(Debug)]
pub(crate) enum CopyConnection {}

/// A copy that has connected. This system does not support copies.
#[cfg(feature = "program")]
#[derive(Debug)]
pub(crate) struct ConnectedCopy {
    pub(crate) connection: CopyConnection,
    pub(crate) pid: u32,
    pub(crate) facts: Option<[u64; 3]>,
}

#[cfg(feature = "program")]
impl CopyListener {
    pub(crate) fn bind(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn accept(&self) -> io::Result<ConnectedCopy> {
        match *self {}
    }
}

#[cfg(feature = "program")]
pub(crate) fn wake_copy_listener(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
