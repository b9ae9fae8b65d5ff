//! Saves files of running programs: heap snapshots, and dumps of DMD.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use memory_report::new_file::Readers;
use memory_reporter::live::HelloAnswer;

use super::ask;
use super::error::LiveError;
use super::sockets::sockets_of;
use crate::temporary;

pub(super) const TRACK_REQUEST: &str = "dmd-track";
pub(super) const LOG_REQUEST: &str = "dmd-log";
pub(super) const COPY_REQUEST: &str = "dmd-copy";
const DUMP_REQUEST: &str = "dmd-dump";
/// The request that `heap_graph::answer_snapshots` answers.
const SNAPSHOT_REQUEST: &str = "heap-snapshot";

/// Saves a heap snapshot of a process that answers requests for heap snapshots (`heap_graph::answer_snapshots`).
///
/// Only this user can read the file. Its name starts with `incomplete-` until the whole snapshot has arrived.
///
/// # Errors
///
/// Returns an error if the process does not listen, offers no snapshots, refuses, ends before the snapshot is complete,
/// or takes longer than `timeout`, or if the file cannot be written.
pub fn save_snapshot(pid: u32, path: &Path, timeout: Duration) -> Result<(), LiveError> {
    save(pid, SNAPSHOT_REQUEST, path, timeout)
}

/// Saves a compressed dump of a process that DMD records. Replaces an existing file.
///
/// Only this user can read the file. Its name starts with `incomplete-` until the whole dump has arrived.
///
/// # Errors
///
/// Returns an error if DMD does not record the process, if the process does not listen, refuses, ends before the dump
/// is complete, or takes longer than `timeout`, or if the file cannot be written.
pub fn save_dump(pid: u32, path: &Path, timeout: Duration) -> Result<(), LiveError> {
    save(pid, DUMP_REQUEST, path, timeout)
}

fn save(pid: u32, request: &str, path: &Path, timeout: Duration) -> Result<(), LiveError> {
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    let answer = ask::file(&socket.path, request, timeout);
    let answer = answer.map_err(|error| explained(&socket.path, request, error, timeout))?;
    receive(answer, path, timeout)
}

/// Returns the error for the user: a refusal of a request that the process does not offer becomes an error with advice.
pub(super) fn explained(socket: &Path, request: &str, error: LiveError, timeout: Duration) -> LiveError {
    match error {
        LiveError::Refused(message) => {
            // A process that does not know the request sends a message that does not help the user.
            let is_offered = ask::hello(socket, timeout).map(|hello| offers(&hello, request));
            if is_offered.unwrap_or(true) { LiveError::Refused(message) } else { not_offered(request) }
        }
        error => error,
    }
}

/// Saves a compressed answer. The file gets the name `path` when it is complete.
pub(super) fn receive(answer: impl Read, path: &Path, timeout: Duration) -> Result<(), LiveError> {
    let received = temporary::write_new(path, Readers::User, |file| {
        let mut copy = CopyingWriter { answer, file, written: Ok(()) };
        // The decoder fails if the stream ends too early.
        let whole = io::copy(&mut MultiGzDecoder::new(&mut copy), &mut io::sink());
        copy.written?;
        whole.map(drop).map_err(|error| NotReceived::Answer(LiveError::from_transfer(error, timeout)))
    });
    received.map_err(|error| match error {
        NotReceived::Answer(error) => error,
        NotReceived::File(error) => LiveError::Write(path.to_owned(), error),
    })
}

/// The reason why there is no file.
enum NotReceived {
    Answer(LiveError),
    File(io::Error),
}

impl From<io::Error> for NotReceived {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

fn offers(hello: &HelloAnswer, request: &str) -> bool {
    hello.requests.iter().any(|offered| offered == request)
}

fn not_offered(request: &str) -> LiveError {
    match request {
        SNAPSHOT_REQUEST => LiveError::NoSnapshots,
        COPY_REQUEST => LiveError::NoCopies,
        TRACK_REQUEST | LOG_REQUEST => LiveError::NotTracked,
        _ => LiveError::NotRecorded,
    }
}

/// A reader for the decoder. It also writes all bytes that the decoder reads to a file.
struct CopyingWriter<'f, R> {
    answer: R,
    file: &'f mut File,
    written: io::Result<()>,
}

impl<R: Read> Read for CopyingWriter<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.answer.read(buffer)?;
        self.written = self.file.write_all(&buffer[..bytes]);
        match self.written {
            Ok(()) => Ok(bytes),
            // `written` keeps the error.
            Err(_) => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}
