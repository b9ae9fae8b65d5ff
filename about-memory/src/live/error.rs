//! Why a process could not be asked.

use core::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use memory_report::ReadError;
use memory_reporter::ListenError;

use crate::platform::ConnectError;

/// Why a process could not be asked, or what is wrong with its answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// The folder with the sockets cannot be used.
    Folder(ListenError),
    /// The process has no socket.
    NotListening,
    /// What should be the process's socket is not this user's.
    Foreign,
    /// There was no answer for this long.
    TimedOut(Duration),
    /// The process refused, and this is what it said.
    Refused(String),
    /// The process hung up without a word.
    NoAnswer,
    /// The answer is nothing that is known.
    Garbage,
    /// The answer is not a good report.
    Report(ReadError),
    /// The connection broke.
    Io(io::Error),
    /// A file could not be written.
    Write(PathBuf, io::Error),
}

impl LiveError {
    /// An error while reading or writing the connection.
    pub(crate) fn of(error: io::Error, timeout: Duration) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::TimedOut(timeout),
            _ => Self::Io(error),
        }
    }

    /// The same before the answer has begun.
    pub(crate) fn of_first(error: io::Error, timeout: Duration) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset => Self::NoAnswer,
            _ => Self::of(error, timeout),
        }
    }

    pub(crate) fn of_connect(error: ConnectError, timeout: Duration) -> Self {
        match error {
            ConnectError::Foreign => Self::Foreign,
            ConnectError::Refused => Self::NotListening,
            ConnectError::Crowded => Self::TimedOut(timeout),
            ConnectError::Io(error) if error.kind() == io::ErrorKind::NotFound => Self::NotListening,
            ConnectError::Io(error) => Self::Io(error),
        }
    }

    pub(crate) fn of_report(error: ReadError, timeout: Duration) -> Self {
        match error {
            ReadError::Io(error) => Self::of(error, timeout),
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
                "does not listen: start it with ABOUT_MEMORY=listen, or have it call memory_reporter::listen()",
            ),
            Self::Foreign => f.write_str("its socket belongs to somebody else"),
            Self::TimedOut(timeout) => write!(f, "did not answer within {timeout:?}"),
            Self::Refused(message) => write!(f, "refused: {message}"),
            Self::NoAnswer => f.write_str("hung up without an answer"),
            Self::Garbage => f.write_str("answered something that is not understood"),
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
