//! Answers one peer. A peer costs at most one thread. The time to send its request and the time to read the answer are
//! limited.

use core::time::Duration;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};

use memory_report::file;

use crate::collect::CollectOptions;
use crate::engine_abi;
use crate::platform::Peer;
use crate::reporting::amounts;

use super::functions::{self, COPY_REQUEST};
use super::hearing::{PeerSignal, TIME_TO_READ, hear};
use super::log::{self, PeerLog};
use super::protocol::{
    AmountsAnswer, CopyAnswer, HelloAnswer, LiveRequest, MAX_REQUEST, MinimizeAnswer, TrackAnswer, VERSION,
    refusal,
};
use super::tracking::{self, TrackingSession};
use super::turns::{DEADLINE, collect_alone, minimize_alone};
use super::workers::{AllBusy, WorkerThreads};

const TIME_TO_ASK: Duration = Duration::from_secs(5);
/// The listening thread spends at most this time on sending an error to a peer.
const TIME_TO_REFUSE: Duration = Duration::from_millis(10);
const MAX_DEADLINE: Duration = Duration::from_secs(600);
const MAX_NAME: usize = 100;
/// The default length of a log of allocations, the same as in Firefox.
const LENGTH: u64 = 5000;
/// The compression level: low, since a peer waits and reads the report once.
const FAST: u32 = 1;

/// The server of this process.
pub(super) struct LiveServer(WorkerThreads<Peer>);

struct ProcessIdentity {
    pid: u32,
    name: String,
    exe: String,
    started: u64,
}

impl LiveServer {
    pub(super) fn new(name: Option<String>, started: u64) -> Self {
        let exe = std::env::current_exe().unwrap_or_default();
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| {
            exe.file_name().map_or_else(|| "unknown".to_owned(), |name| name.to_string_lossy().into_owned())
        });
        let name = name.chars().take(MAX_NAME).collect();
        let who = ProcessIdentity { pid: std::process::id(), name, exe: exe.display().to_string(), started };
        Self(WorkerThreads::new(move |mut peer: Peer| {
            peer.allow(TIME_TO_ASK);
            // A peer that hangs or disconnects gets no further answer.
            let _ = who.answer(&mut peer);
            peer.finish();
        }))
    }

    /// Answers the peer on another thread.
    pub(super) fn answer(&self, peer: Peer) {
        if let Err(AllBusy(mut peer)) = self.0.start(peer) {
            peer.allow(TIME_TO_REFUSE);
            // A peer that does not read this error needs no further answer.
            let _ = refuse(&mut peer, "too many requests at the same time; try again later");
            peer.finish();
        }
    }
}

impl ProcessIdentity {
    fn answer(&self, peer: &mut Peer) -> io::Result<()> {
        let mut line = Vec::new();
        BufReader::new(&mut *peer).take(MAX_REQUEST as u64).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        if !line.ends_with(b"\n") {
            return refuse(peer, &format!("not a request: expected a line of at most {MAX_REQUEST} bytes"));
        }
        let Ok(line) = core::str::from_utf8(&line) else {
            return refuse(peer, "not a request: invalid UTF-8");
        };
        let request = match LiveRequest::from_json(line) {
            Ok(request) => request,
            Err(error) => return refuse(peer, &format!("not a request: {error}")),
        };
        if request.version != VERSION {
            let version = request.version;
            return refuse(peer, &format!("version {version} is not supported (expected {VERSION})"));
        }
        match &*request.request {
            "hello" => self.hello(peer),
            "report" => self.report(peer, &request),
            "minimize" => minimize(peer),
            "amounts" => amounts_now(peer),
            tracking::REQUEST if engine_abi::may_record() => match &request.record {
                Some(path) => record(peer, path),
                None => track(peer, request.sample_bytes.unwrap_or(tracking::SAMPLE_BYTES)),
            },
            COPY_REQUEST if engine_abi::is_connected() && request.keep => keep_copy(peer),
            COPY_REQUEST if engine_abi::is_connected() => copy(peer),
            log::REQUEST if engine_abi::may_record() => {
                stream_log(peer, request.per_million.unwrap_or(log::ALL), request.length)
            }
            other => hand_on(peer, other, line),
        }
    }

    fn hello(&self, peer: &mut Peer) -> io::Result<()> {
        let hello = HelloAnswer {
            version: VERSION,
            pid: self.pid,
            name: self.name.clone(),
            exe: self.exe.clone(),
            started: self.started,
            requests: functions::names(),
        };
        peer.write_all(hello.to_line().as_bytes())
    }

    fn report(&self, peer: &mut Peer, request: &LiveRequest) -> io::Result<()> {
        if request.minimize
            && let Err(busy) = minimize_alone()
        {
            return refuse(peer, &busy.to_string());
        }
        let deadline = request.deadline_ms.map_or(DEADLINE, Duration::from_millis);
        let deadline = deadline.clamp(Duration::from_millis(1), MAX_DEADLINE);
        let mut options = CollectOptions::new()
            .anonymize(request.anonymize)
            .resident_map(request.resident_map)
            .deadline(deadline);
        if request.named {
            options = options.process(format!("{} (pid {})", self.name, self.pid));
        }
        let set = collect_alone(&options);
        if std::process::id() != self.pid {
            // A reporter has forked, and this is the child process.
            return Ok(());
        }
        peer.allow(TIME_TO_READ);
        file::write_compressed(peer, &set, FAST)
    }
}

/// Records until the peer sends a line or hangs up. After a line, sends a dump of the blocks that were allocated
/// since the start of the recording and are still live.
fn track(peer: &mut Peer, mean: u64) -> io::Result<()> {
    let mut session = match TrackingSession::start(mean) {
        Ok(session) => session,
        Err(error) => return refuse(peer, &error.to_string()),
    };
    let begun = TrackAnswer { version: VERSION, sample_bytes: mean, recording: false };
    session.outlive_process(peer);
    peer.write_all(begun.to_line().as_bytes())?;
    if !wait_for_line(peer)? {
        return Ok(());
    }
    match session.end() {
        Ok(Some(mut dump)) => {
            peer.allow(TIME_TO_READ);
            io::copy(&mut dump, peer).map(drop)
        }
        Ok(None) => Ok(()),
        Err(error) => {
            peer.allow(TIME_TO_ASK);
            refuse(peer, &error.to_string())
        }
    }
}

/// Records into a file until the peer sends a line or hangs up. The file is complete in both cases. After a line, sends
/// an answer.
fn record(peer: &mut Peer, path: &str) -> io::Result<()> {
    let session = match TrackingSession::record(path) {
        Ok(session) => session,
        Err(error) => return refuse(peer, &error.to_string()),
    };
    let told = TrackAnswer { version: VERSION, sample_bytes: 0, recording: true }.to_line();
    peer.write_all(told.as_bytes())?;
    let is_asked = wait_for_line(peer)?;
    drop(session);
    if is_asked {
        peer.allow(TIME_TO_ASK);
        peer.write_all(told.as_bytes())?;
    }
    Ok(())
}

/// Sends the reason why there is no copy.
fn refuse_copy(peer: &mut Peer, error: &io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::Unsupported {
        return refuse(peer, "DMD does not record this process now, or the system cannot copy processes");
    }
    refuse(peer, &format!("cannot copy the process: {error}"))
}

/// Makes a copy for the reader that DMD's options name. The answer contains the number 0: the reader gets
/// the number from the copy.
fn keep_copy(peer: &mut Peer) -> io::Result<()> {
    match engine_abi::LiveCopy::keep() {
        Ok(()) => peer.write_all(CopyAnswer { version: VERSION, pid: 0 }.to_line().as_bytes()),
        Err(error) => refuse_copy(peer, &error),
    }
}

/// Keeps a copy of the process until the peer sends a line or hangs up.
fn copy(peer: &mut Peer) -> io::Result<()> {
    let copied = match engine_abi::LiveCopy::make() {
        Ok(copied) => copied,
        Err(error) => return refuse_copy(peer, &error),
    };
    let told = CopyAnswer { version: VERSION, pid: copied.process() };
    peer.write_all(told.to_line().as_bytes())?;
    wait_for_line(peer).map(drop)
}

/// Streams the log of allocations until the peer sends a line or hangs up.
fn stream_log(peer: &mut Peer, per_million: u64, length: Option<u64>) -> io::Result<()> {
    let streamed = PeerLog::open(per_million, length.unwrap_or(LENGTH)).and_then(|log| log.send(peer));
    match streamed {
        Err(error) if error.kind() == io::ErrorKind::Other => {
            peer.allow(TIME_TO_ASK);
            refuse(peer, &error.to_string())
        }
        streamed => streamed,
    }
}

/// Waits for a line, without a limit. Returns false if the peer hangs up first.
fn wait_for_line(peer: &mut Peer) -> io::Result<bool> {
    loop {
        match hear(peer, TIME_TO_READ)? {
            PeerSignal::Nothing => {}
            PeerSignal::Line => return Ok(true),
            PeerSignal::Gone => return Ok(false),
        }
    }
}

fn minimize(peer: &mut Peer) -> io::Result<()> {
    let resident_before = amounts::resident();
    if let Err(busy) = minimize_alone() {
        return refuse(peer, &busy.to_string());
    }
    let resident = amounts::resident();
    peer.allow(TIME_TO_ASK);
    let minimized = MinimizeAnswer { version: VERSION, resident_before, resident };
    peer.write_all(minimized.to_line().as_bytes())
}

fn amounts_now(peer: &mut Peer) -> io::Result<()> {
    let [heap_allocated, resident, vsize] =
        [amounts::heap_allocated(), amounts::resident(), amounts::vsize()];
    peer.allow(TIME_TO_ASK);
    let amounts = AmountsAnswer { version: VERSION, heap_allocated, resident, vsize };
    peer.write_all(amounts.to_line().as_bytes())
}

fn hand_on(peer: &mut Peer, request: &str, line: &str) -> io::Result<()> {
    let mut answer = AnswerWriter { peer, begun: false };
    match functions::run(request, line, &mut answer) {
        Some(Err(error)) if !answer.begun => {
            peer.allow(TIME_TO_ASK);
            refuse(peer, &error.to_string())
        }
        Some(result) => result,
        None => {
            let known = ["hello", "report", "minimize", "amounts"].map(str::to_owned);
            let known: Vec<_> = known.into_iter().chain(functions::names()).collect();
            refuse(peer, &format!("unknown request {request:?}: expected one of {}", known.join(", ")))
        }
    }
}

/// The writer for the answer of a function. The peer's time to read starts with the first byte.
struct AnswerWriter<'p> {
    peer: &'p mut Peer,
    begun: bool,
}

impl Write for AnswerWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.begun {
            self.peer.allow(TIME_TO_READ);
            self.begun = true;
        }
        self.peer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.peer.flush()
    }
}

fn refuse(peer: &mut Peer, error: &str) -> io::Result<()> {
    peer.write_all(refusal(error).as_bytes())
}
