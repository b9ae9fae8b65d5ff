//! Requests to one process, and to many at the same time.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use memory_report::ReportSet;
use memory_report::file::{self, ReadOptions};
use memory_reporter::live::{
    AmountsAnswer, CopyAnswer, HelloAnswer, MAX_REQUEST, MinimizeAnswer, TrackAnswer, VERSION,
};
use serde::{Deserialize, Serialize};

use crate::platform::DeadlineStream;

use super::error::LiveError;
use super::sockets::{SocketFile, sockets_of};

/// The longest answer of one line, in bytes.
const MAX_LINE: u64 = 1 << 16;
/// At most this many requests for reports run at the same time.
pub(super) const REPORTS_AT_ONCE: usize = 64;
/// At most this many requests for names run at the same time. A process that hangs occupies one waiting thread.
const NAMES_AT_ONCE: usize = 512;
/// The stack size of a thread that requests a name, in bytes.
const STACK: usize = 256 << 10;

/// Options of a request for reports.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AskOptions {
    pub(crate) anonymize: bool,
    pub(crate) minimize: bool,
    pub(crate) resident_map: bool,
    pub(crate) own_name: bool,
    pub(crate) timeout: Duration,
    pub(crate) read: ReadOptions,
}

impl Default for AskOptions {
    fn default() -> Self {
        Self {
            anonymize: false,
            minimize: false,
            resident_map: false,
            own_name: false,
            timeout: Duration::from_secs(10),
            read: ReadOptions::default(),
        }
    }
}

impl AskOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether reporters leave private data out of paths and descriptions. Default: no.
    #[must_use]
    pub fn anonymize(mut self, anonymize: bool) -> Self {
        self.anonymize = anonymize;
        self
    }

    /// Whether the process frees its caches before it reports. Default: no.
    #[must_use]
    pub fn minimize(mut self, minimize: bool) -> Self {
        self.minimize = minimize;
        self
    }

    /// Whether the process also collects the view that sums to `resident`
    /// ([`CollectOptions::resident_map`](memory_reporter::CollectOptions::resident_map)). Default: no.
    #[must_use]
    pub fn resident_map(mut self, resident_map: bool) -> Self {
        self.resident_map = resident_map;
        self
    }

    /// Whether a single process appears under its own name, as `NAME (pid N)` instead of `Main Process (pid N)`.
    /// Default: no.
    #[must_use]
    pub fn own_name(mut self, own_name: bool) -> Self {
        self.own_name = own_name;
        self
    }

    /// Sets the time that a process has for its whole answer. A reporter may use three quarters of this time; then the
    /// process stops waiting for the reporter. Default: ten seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the limits on the answer. Answers are not trusted.
    #[must_use]
    pub fn read(mut self, read: ReadOptions) -> Self {
        self.read = read;
        self
    }
}

#[derive(Serialize)]
struct RequestLine<'a> {
    version: u32,
    request: &'a str,
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    anonymize: bool,
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    minimize: bool,
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    resident_map: bool,
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    named: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_million: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    keep: bool,
}

impl<'a> RequestLine<'a> {
    fn new(request: &'a str) -> Self {
        Self {
            version: VERSION,
            request,
            anonymize: false,
            minimize: false,
            resident_map: false,
            named: false,
            deadline_ms: None,
            sample_bytes: None,
            record: None,
            per_million: None,
            length: None,
            keep: false,
        }
    }
}

#[derive(Deserialize)]
struct RefusalAnswer {
    error: String,
}

/// The fields that are the same in all versions of the protocol.
#[derive(Deserialize)]
struct AnswerVersion {
    version: u64,
    /// Only in the answer to `hello`.
    name: Option<String>,
}

/// Sends a request. Reading the answer fails after the timeout.
fn send(
    socket: &Path,
    request: &RequestLine<'_>,
    timeout: Duration,
) -> Result<BufReader<DeadlineStream>, LiveError> {
    let until = Instant::now() + timeout;
    let mut stream =
        DeadlineStream::connect(socket, until).map_err(|error| LiveError::from_connect(error, timeout))?;
    let mut line = serde_json::to_vec(request).expect("plain data is always JSON");
    line.push(b'\n');
    match stream.write_all(&line) {
        // The process may have sent a refusal before it closed the connection.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        sent => sent.map_err(|error| LiveError::from_transfer(error, timeout))?,
    }
    Ok(BufReader::with_capacity(1 << 16, stream))
}

/// Returns the first byte of the answer without consuming it.
fn first(answer: &mut BufReader<DeadlineStream>, timeout: Duration) -> Result<u8, LiveError> {
    let bytes = answer.fill_buf().map_err(|error| LiveError::before_answer(error, timeout))?;
    bytes.first().copied().ok_or(LiveError::NoAnswer)
}

/// Reads an answer of one line.
fn line<T>(
    answer: &mut BufReader<DeadlineStream>,
    parse: impl FnOnce(&str) -> Option<T>,
    timeout: Duration,
) -> Result<T, LiveError> {
    first(answer, timeout)?;
    let mut line = Vec::new();
    let read = answer.take(MAX_LINE).read_until(b'\n', &mut line);
    read.map_err(|error| LiveError::from_transfer(error, timeout))?;
    if let Some(refused) = refusal(&line) {
        return Err(refused);
    }
    match serde_json::from_slice::<AnswerVersion>(&line) {
        Ok(AnswerVersion { version, name }) if version != u64::from(VERSION) => {
            Err(LiveError::Version { name, version })
        }
        _ => core::str::from_utf8(&line).ok().and_then(parse).ok_or(LiveError::Garbage),
    }
}

/// Returns the error if a line is a refusal.
pub(super) fn refusal(line: &[u8]) -> Option<LiveError> {
    serde_json::from_slice::<RefusalAnswer>(line).ok().map(|refusal| LiveError::Refused(refusal.error))
}

/// Fails unless the answer is compressed, like reports and dumps. Any other answer can only be a refusal.
pub(super) fn compressed(answer: &mut BufReader<DeadlineStream>, timeout: Duration) -> Result<(), LiveError> {
    match first(answer, timeout)? {
        0x1f => Ok(()),
        _ => Err(line(answer, |_| None::<()>, timeout).err().unwrap_or(LiveError::Garbage)),
    }
}

pub(super) fn hello(socket: &Path, timeout: Duration) -> Result<HelloAnswer, LiveError> {
    line(&mut send(socket, &RequestLine::new("hello"), timeout)?, HelloAnswer::from_json, timeout)
}

/// Requests the names of many processes and, if `also_amounts`, their amounts. All requests together have `timeout`.
pub(super) fn hellos(
    sockets: &[SocketFile],
    also_amounts: bool,
    timeout: Duration,
) -> Vec<(Result<HelloAnswer, LiveError>, Option<AmountsAnswer>)> {
    let end = Instant::now() + timeout;
    let left = || match end.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(LiveError::TimedOut(timeout)),
        left => Ok(left),
    };
    in_parallel(sockets, NAMES_AT_ONCE, |socket| {
        let hello = left().and_then(|left| hello(&socket.path, left));
        let hello = hello.map_err(|error| match error {
            LiveError::TimedOut(_) => LiveError::TimedOut(timeout),
            error => error,
        });
        let amounts = || amounts_at(&socket.path, left().ok()?).ok();
        let amounts = if also_amounts && hello.is_ok() { amounts() } else { None };
        (hello, amounts)
    })
}

fn amounts_at(socket: &Path, timeout: Duration) -> Result<AmountsAnswer, LiveError> {
    line(&mut send(socket, &RequestLine::new("amounts"), timeout)?, AmountsAnswer::from_json, timeout)
}

/// Requests the reports of a process. If `named`, the process appears under its own name.
pub(super) fn report(socket: &Path, named: bool, options: &AskOptions) -> Result<ReportSet, LiveError> {
    let timeout = options.timeout;
    let deadline = u64::try_from((timeout * 3 / 4).as_millis()).unwrap_or(u64::MAX);
    let request = RequestLine {
        anonymize: options.anonymize,
        minimize: options.minimize,
        resident_map: options.resident_map,
        named,
        deadline_ms: Some(deadline),
        ..RequestLine::new("report")
    };
    let mut answer = send(socket, &request, timeout)?;
    compressed(&mut answer, timeout)?;
    file::read_from(answer, &options.read).map_err(|error| LiveError::from_report(error, timeout))
}

/// Sends a request whose answer is a compressed file.
pub(super) fn file(socket: &Path, request: &str, timeout: Duration) -> Result<impl Read + use<>, LiveError> {
    let mut answer = send(socket, &RequestLine::new(request), timeout)?;
    compressed(&mut answer, timeout)?;
    Ok(answer)
}

/// Lets DMD record a process until the returned connection is dropped.
pub(super) fn track(
    socket: &Path,
    sample_bytes: u64,
    timeout: Duration,
) -> Result<BufReader<DeadlineStream>, LiveError> {
    let request = RequestLine { sample_bytes: Some(sample_bytes), ..RequestLine::new("dmd-track") };
    let mut answer = send(socket, &request, timeout)?;
    line(&mut answer, TrackAnswer::from_json, timeout)?;
    Ok(answer)
}

/// Lets DMD record all events of a process into a file with this absolute path. Dropping the returned connection ends
/// the recording.
pub(super) fn record(
    socket: &Path,
    path: &str,
    timeout: Duration,
) -> Result<BufReader<DeadlineStream>, LiveError> {
    let request = RequestLine { record: Some(path), ..RequestLine::new("dmd-track") };
    if serde_json::to_vec(&request).map_or(0, |line| line.len()) >= MAX_REQUEST {
        return Err(LiveError::Write(path.into(), io::ErrorKind::InvalidFilename.into()));
    }
    let mut answer = send(socket, &request, timeout)?;
    recorded(&mut answer, timeout)?;
    Ok(answer)
}

/// Reads the answer of a process that has started or ended a recording into a file.
pub(super) fn recorded(answer: &mut BufReader<DeadlineStream>, timeout: Duration) -> Result<(), LiveError> {
    match line(answer, TrackAnswer::from_json, timeout)?.recording {
        true => Ok(()),
        // An older version does not know the key for a file.
        false => {
            Err(LiveError::Refused("its version of memory-reporter cannot record on request".to_owned()))
        }
    }
}

/// Lets a process make a copy of itself. Returns the copy's process id and the connection. Dropping the connection ends
/// the copy.
pub(super) fn copy(socket: &Path, timeout: Duration) -> Result<(u32, BufReader<DeadlineStream>), LiveError> {
    let mut answer = send(socket, &RequestLine::new("dmd-copy"), timeout)?;
    let copied = line(&mut answer, CopyAnswer::from_json, timeout)?;
    Ok((copied.pid, answer))
}

/// Lets a process make a copy of itself for the reader whose socket DMD's option `--copy-to` names.
#[cfg(feature = "program")]
pub(super) fn keep_copy(socket: &Path, timeout: Duration) -> Result<(), LiveError> {
    let request = RequestLine { keep: true, ..RequestLine::new("dmd-copy") };
    let mut answer = send(socket, &request, timeout)?;
    match line(&mut answer, CopyAnswer::from_json, timeout)?.pid {
        0 => Ok(()),
        // The process does not know the key `keep`, and has made a copy for this connection.
        _ => Err(LiveError::NoCopies),
    }
}

/// Opens a log of allocations. Dropping the returned connection ends the log.
pub(super) fn log(
    socket: &Path,
    per_million: u64,
    length: u64,
    timeout: Duration,
) -> Result<BufReader<DeadlineStream>, LiveError> {
    let request =
        RequestLine { per_million: Some(per_million), length: Some(length), ..RequestLine::new("dmd-log") };
    let mut answer = send(socket, &request, timeout)?;
    line(&mut answer, TrackAnswer::from_json, timeout)?;
    Ok(answer)
}

/// Asks a process to free its caches.
///
/// # Errors
///
/// Returns an error if the process does not listen, refuses, or takes longer than `timeout`.
pub fn minimize(pid: u32, timeout: Duration) -> Result<MinimizeAnswer, LiveError> {
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    line(&mut send(&socket.path, &RequestLine::new("minimize"), timeout)?, MinimizeAnswer::from_json, timeout)
}

/// Asks a process to collect its garbage ([`answer_collections`](memory_reporter::live::answer_collections)).
///
/// # Errors
///
/// Returns an error if the process does not listen, has no collectors, refuses, or takes longer than `timeout`.
pub fn collect_garbage(pid: u32, timeout: Duration) -> Result<MinimizeAnswer, LiveError> {
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    line(&mut send(&socket.path, &RequestLine::new("collect"), timeout)?, MinimizeAnswer::from_json, timeout)
}

/// Requests the amounts that a process can read without a collection.
///
/// # Errors
///
/// Returns an error if the process does not listen, refuses, or takes longer than `timeout`.
pub fn amounts(pid: u32, timeout: Duration) -> Result<AmountsAnswer, LiveError> {
    let socket = sockets_of(&[pid])?.pop().flatten().ok_or(LiveError::NotListening)?;
    amounts_at(&socket.path, timeout)
}

/// Calls `ask` for all `items` on at most `most` threads. Returns the answers in the order of the items.
pub(super) fn in_parallel<T: Sync, A: Send>(
    items: &[T],
    most: usize,
    ask: impl Fn(&T) -> A + Sync,
) -> Vec<A> {
    let next = AtomicUsize::new(0);
    let answers: Vec<Mutex<Option<A>>> = items.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(at) else { break };
                let answer = ask(item);
                *answers[at].lock().expect("no thread panics while it holds the lock") = Some(answer);
            }
        };
        // This thread works too, so all items are handled even if no other thread can be started.
        for _ in 1..items.len().min(most) {
            let thread = std::thread::Builder::new();
            let thread = if most > REPORTS_AT_ONCE { thread.stack_size(STACK) } else { thread };
            if thread.spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let answer = |slot: Mutex<Option<A>>| {
        slot.into_inner()
            .expect("no thread panics while it holds the lock")
            .expect("every item has an answer")
    };
    answers.into_iter().map(answer).collect()
}
