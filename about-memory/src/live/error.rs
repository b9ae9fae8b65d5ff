//! Errors of requests to running processes.

use core::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use memory_report::ReadError;
use memory_reporter::live::ListenError;
use memory_reporter::live::VERSION;

use crate::platform::ConnectError;

/// The reason why a request to a process failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// The folder of sockets cannot be used.
    Folder(ListenError),
    /// The process has no socket.
    NotListening,
    /// The file at the path of the process's socket is not a socket, or belongs to another user.
    Foreign,
    /// The process did not answer within this time.
    TimedOut(Duration),
    /// The process answers no requests for heap snapshots.
    NoSnapshots,
    /// DMD does not record the process.
    NotRecorded,
    /// The process listens, but cannot make copies of itself.
    NoCopies,
    /// DMD in the process does not wait for requests to record (`--wait-for-track`, or `Dmd::on_request`).
    NotTracked,
    /// The process refused with this message.
    Refused(String),
    /// The process closed the connection without an answer.
    NoAnswer,
    /// The process ended while DMD recorded it on request.
    Ended,
    /// The process replaced itself by another program while DMD recorded it on request.
    Replaced,
    /// The process speaks another version of the protocol.
    Version {
        /// The name of the process; `None` if the answer does not contain it.
        name: Option<String>,
        /// The version of the process's protocol.
        version: u64,
    },
    /// The answer is neither what was requested nor a refusal.
    Garbage,
    /// The answer is a damaged report.
    Report(ReadError),
    /// The connection broke.
    Io(io::Error),
    /// A file could not be written.
    Write(PathBuf, io::Error),
}

impl LiveError {
    /// Converts an error while reading or writing the connection.
    pub(crate) fn from_transfer(error: io::Error, timeout: Duration) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::TimedOut(timeout),
            _ => Self::Io(error),
        }
    }

    /// Converts an error before the first byte of the answer.
    pub(crate) fn before_answer(error: io::Error, timeout: Duration) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset => Self::NoAnswer,
            _ => Self::from_transfer(error, timeout),
        }
    }

    pub(crate) fn from_connect(error: ConnectError, timeout: Duration) -> Self {
        match error {
            ConnectError::Foreign => Self::Foreign,
            ConnectError::Refused => Self::NotListening,
            ConnectError::Crowded => Self::TimedOut(timeout),
            ConnectError::Io(error) if error.kind() == io::ErrorKind::NotFound => Self::NotListening,
            ConnectError::Io(error) => Self::Io(error),
        }
    }

    pub(crate) fn from_report(error: ReadError, timeout: Duration) -> Self {
        match error {
            ReadError::Io(error) => Self::from_transfer(error, timeout),
            ReadError::Gzip(error)
                if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) =>
            {
                Self::TimedOut(timeout)
            }
            ReadError::Empty => Self::NoAnswer,
            error => Self::Report(error),
        }
    }
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(error) => write!(f, "{error}"),
            Self::NotListening => f.write_str(
                "does not listen: start it with `about-memory run --listen` or ABOUT_MEMORY=listen, or call \
                 memory_reporter::listen() in it",
            ),
            Self::Foreign => f.write_str("its socket's file is not a socket of this user"),
            Self::TimedOut(timeout) => write!(f, "did not answer within {timeout:?}"),
            Self::NoSnapshots => f.write_str(
                "offers no heap snapshot: its program has to call \
                 heap_graph::answer_snapshots(|roots| roots.add(\"name\", &VALUE)).forever()",
            ),
            Self::NotRecorded => f.write_str(
                "DMD does not record it: start it with `about-memory run`, or with DMD=1 if its allocator is dmd::Dmd",
            ),
            Self::NoCopies => f.write_str(
                "makes no copies of itself: its version of DMD is too old, or DMD does not record it; start it with \
                 `about-memory run`",
            ),
            Self::NotTracked => f.write_str(
                "DMD does not wait for requests in it: start it with `about-memory run --wait-for-track`, or declare \
                 dmd::Dmd::on_request as its allocator",
            ),
            Self::Refused(message) => write!(f, "refused: {message}"),
            Self::Ended => f.write_str("ended while DMD recorded it"),
            Self::Replaced => f.write_str("replaced itself by another program while DMD recorded it"),
            Self::NoAnswer => f.write_str("closed the connection without an answer"),
            Self::Version { name, version } => {
                let name = name.as_deref().unwrap_or("its program");
                write!(
                    f,
                    "{name} speaks version {version} of the protocol, and this about-memory version {VERSION}: use the \
                     about-memory of the same release as its memory-reporter"
                )
            }
            Self::Garbage => f.write_str("sent an answer that about-memory does not understand"),
            Self::Report(error) => write!(f, "sent a damaged report: {error}"),
            Self::Io(error) => write!(f, "the connection broke: {error}"),
            Self::Write(path, error) => write!(f, "{}: cannot be written: {error}", path.display()),
        }
    }
}

impl std::error::Error for LiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Folder(error) => Some(error),
            Self::Report(error) => Some(error),
            Self::Io(error) | Self::Write(_, error) => Some(error),
            _ => None,
        }
    }
}
