//! Errors of requests to running processes.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use memory_report::ReadError;
use memory_reporter::live::ListenError;
use memory_reporter::live::VERSION;
use thiserror::Error;

use crate::platform::ConnectError;

/// The reason why a request to a process failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The folder of sockets cannot be used.
    #[error(transparent)]
    Folder(ListenError),
    /// The process has no socket, or does not listen on its socket.
    #[error(
        "does not listen: start it with `about-memory run --listen` or ABOUT_MEMORY=listen, or call \
         memory_reporter::listen() in it"
    )]
    NotListening,
    /// The file at the path of the process's socket is not a socket, or belongs to another user.
    #[error("its socket's file is not a socket of this user")]
    Foreign,
    /// The process did not answer within this time.
    #[error("did not answer within {0:?}")]
    TimedOut(Duration),
    /// The process answers no requests for heap snapshots.
    #[error(
        "offers no heap snapshot: its program has to call \
         heap_graph::answer_snapshots(|roots| roots.add(\"name\", &VALUE)).forever()"
    )]
    NoSnapshots,
    /// DMD does not record the process.
    #[error(
        "DMD does not record it: start it with `about-memory run`, or with DMD=1 if its allocator is dmd::Dmd"
    )]
    NotRecorded,
    /// The process listens, but cannot make copies of itself.
    #[error(
        "makes no copies of itself: its version of DMD is too old, or DMD does not record it; start it with \
         `about-memory run`"
    )]
    NoCopies,
    /// DMD in the process does not wait for requests to record (`--wait-for-track`, or `Dmd::on_request`).
    #[error(
        "DMD does not wait for requests in it: start it with `about-memory run --wait-for-track`, or declare \
         dmd::Dmd::on_request as its allocator"
    )]
    NotTracked,
    /// The process refused with this message.
    #[error("refused: {0}")]
    Refused(String),
    /// The process closed the connection without an answer.
    #[error("closed the connection without an answer")]
    NoAnswer,
    /// The process ended while DMD recorded it on request.
    #[error("ended while DMD recorded it")]
    Ended,
    /// The process replaced itself by another program while DMD recorded it on request.
    #[error("replaced itself by another program while DMD recorded it")]
    Replaced,
    /// The process speaks another version of the protocol.
    #[error(
        "{} speaks version {version} of the protocol, and this about-memory version {VERSION}: use the about-memory \
         of the same release as its memory-reporter",
        .name.as_deref().unwrap_or("its program")
    )]
    Version {
        /// The name of the process; `None` if the answer does not contain it.
        name: Option<String>,
        /// The version of the process's protocol.
        version: u64,
    },
    /// The answer is neither what was requested nor a refusal.
    #[error("sent an answer that about-memory does not understand")]
    Garbage,
    /// The answer is a damaged report.
    #[error("sent a damaged report: {0}")]
    Report(#[source] ReadError),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[source] io::Error),
    /// A file could not be written.
    #[error("{0}: cannot be written: {1}")]
    Write(PathBuf, #[source] io::Error),
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
