//! Recording that a request switches on and off in a running program.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use dmd_format::recording::{BlockAction, BlockEvent};
use dmd_format::sample::weight;
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::live::Waiting;
use crate::recordings::replay::Recording;
use crate::support::{c_program, command, count, preloaded, read_dump, victim};

const PATIENCE: Duration = Duration::from_secs(60);

/// The number of blocks of 107 bytes that the program has after each line.
fn young() -> u64 {
    if std::env::var_os("THOROUGH").is_some() { 160_000 } else { 40_000 }
}

/// A session of tracking.
pub(crate) struct Session(BufReader<UnixStream>);

impl Session {
    /// Requests a session. Returns it with the program's first answer.
    fn ask(waiting: &Waiting, members: &str) -> (Self, String) {
        Self::request(waiting, "dmd-track", members)
    }

    pub(crate) fn request(waiting: &Waiting, request: &str, members: &str) -> (Self, String) {
        let mut stream = UnixStream::connect(waiting.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
            .write_all(format!("{{\"version\":1,\"request\":\"{request}\"{members}}}\n").as_bytes())
            .unwrap();
        let mut session = Self(BufReader::new(stream));
        let mut line = String::new();
        session.0.read_line(&mut line).unwrap();
        (session, line)
    }

    fn begin(waiting: &Waiting, sample_bytes: u64) -> Self {
        let (session, line) = Self::ask(waiting, &format!(",\"sample_bytes\":{sample_bytes}"));
        assert_eq!(line, format!("{{\"version\":1,\"sample_bytes\":{sample_bytes}}}\n"));
        session
    }

    /// Starts a recording into this file.
    fn record(waiting: &Waiting, path: &Path) -> Self {
        let (session, line) = Self::ask(waiting, &format!(",\"record\":\"{}\"", path.display()));
        assert_eq!(line, RECORDS);
        session
    }

    /// Ends a recording. The file is complete after that.
    fn finish(mut self) {
        self.0.get_mut().write_all(b"\n").unwrap();
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, RECORDS);
    }

    fn end(mut self) -> Value {
        self.0.get_mut().write_all(b"\n").unwrap();
        self.dump().unwrap()
    }

    /// The dump that the process sends before it closes the connection; `None` if it sends nothing.
    fn dump(mut self) -> Option<Value> {
        if self.0.fill_buf().unwrap().is_empty() {
            return None;
        }
        let mut text = String::new();
        GzDecoder::new(self.0).read_to_string(&mut text).unwrap();
        Some(serde_json::from_str(&text).unwrap())
    }
}

fn grow(waiting: &mut Waiting, name: &str) {
    writeln!(waiting.child.stdin.as_mut().unwrap(), "{name}").unwrap();
    assert_eq!(waiting.saved(name).len(), 1);
}

fn of_size(dump: &Value, size: u64) -> u64 {
    count(dump, |block| block["req"] == size)
}

fn check_sessions(mut waiting: Waiting) {
    assert!(waiting.requests().contains(&"dmd-track".to_owned()));
    let refused = |waiting: &Waiting| String::from_utf8(waiting.ask("dmd-dump")).unwrap();
    assert!(refused(&waiting).contains("DMD does not record this process now"), "{}", refused(&waiting));

    grow(&mut waiting, "before");
    let session = Session::begin(&waiting, 0);
    grow(&mut waiting, "exact");
    let (_, busy) = Session::ask(&waiting, "");
    assert!(busy.contains("already"), "{busy}");
    let dump = session.end();
    assert_eq!(dump["invocation"]["mode"], "live");
    assert_eq!([of_size(&dump, 107), of_size(&dump, 200), of_size(&dump, 3000)], [young(), 0, 0]);
    assert!(refused(&waiting).contains("DMD does not record this process now"));

    // The blocks of the first session end in the second session, which does not know them.
    for (name, mean) in [("fine", 4096), ("coarse", 65_536)] {
        let session = Session::begin(&waiting, mean);
        grow(&mut waiting, name);
        let dump = session.end();
        assert_eq!(dump["invocation"]["sampleBytes"], mean);
        assert_eq!([of_size(&dump, 200), of_size(&dump, 3000)], [0, 0]);
        let recorded = of_size(&dump, 107) as f64;
        let estimate = recorded * weight(107, mean);
        // The standard deviation of a number of rare events is its square root.
        assert!((estimate / young() as f64 - 1.0).abs() < 5.0 / recorded.sqrt(), "{mean}: {estimate}");
        let stacks = dump["blockList"].as_array().unwrap();
        assert!(stacks.iter().all(|block| block.get("alloc").is_some()), "each sampled block has a stack");
    }

    // If a peer closes the connection, its session ends.
    drop(Session::begin(&waiting, 0));
    let start = Instant::now();
    loop {
        let (session, line) = Session::ask(&waiting, ",\"sample_bytes\":0");
        if !line.contains("error") {
            assert_eq!(of_size(&session.end(), 107), 0);
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{line}");
    }
    grow(&mut waiting, "after");
}

const RECORDS: &str = "{\"version\":1,\"sample_bytes\":0,\"recording\":true}\n";

/// The number of live blocks of this size at the end of a recording, and the number of all blocks of this size.
fn recorded(recording: &Recording, size: u64) -> (u64, u64) {
    let state = recording.replay();
    assert_eq!(state.faults, 0, "each end belongs to a block of the recording");
    let live = state.blocks.values().filter(|block| block.requested == size).count();
    let begun =
        |event: &&BlockEvent| matches!(event.what, BlockAction::Begin(block) if block.requested == size);
    let all = recording.events.values().flatten().filter(begun).count();
    (live as u64, all as u64)
}

fn check_recordings(mut waiting: Waiting) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    grow(&mut waiting, "before");
    // Each session has its own file. Older blocks end during the session and are not in the file.
    for name in ["first.dmdrec", "first.dmdrec"] {
        let session = Session::record(&waiting, &path(name));
        grow(&mut waiting, name);
        let (_, busy) = Session::ask(&waiting, "");
        assert!(busy.contains("already"), "{busy}");
        let (_, busy) = Session::ask(&waiting, &format!(",\"record\":\"{}\"", path("third").display()));
        assert!(busy.contains("already"), "{busy}");
        session.finish();
        let recording = Recording::read(path(name));
        assert_eq!((recording.about.began_late, &recording.fault), (1, &None));
        let end = recording.end.expect("an end");
        assert_eq!((end.lost_events, end.dropped_blocks), (0, 0));
        assert_eq!(
            (recorded(&recording, 107), recorded(&recording, 200)),
            ((young(), young()), (0, young()))
        );
        assert_eq!(recorded(&recording, 3000), (0, 0));
        std::fs::remove_file(waiting.saved(name).remove(0)).unwrap();
    }
    // If a peer closes the connection, its recording ends, and a dump is possible afterwards.
    let session = Session::record(&waiting, &path("left.dmdrec"));
    grow(&mut waiting, "left");
    drop(session);
    let start = Instant::now();
    while Recording::read(path("left.dmdrec")).end.is_none() {
        assert!(start.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    assert_eq!(recorded(&Recording::read(path("left.dmdrec")), 107), (young(), young()));
    let session = again(&waiting);
    grow(&mut waiting, "dump");
    assert_eq!(of_size(&session.end(), 107), young());
    for (record, why) in [
        ("relative".to_owned(), "is not an absolute path"),
        ("/nowhere/r.dmdrec".to_owned(), "/nowhere/r.dmdrec: No such file or directory"),
        (folder.path().display().to_string(), "Is a directory"),
    ] {
        let (_, line) = Session::ask(&waiting, &format!(",\"record\":\"{record}\""));
        assert!(line.contains("\"error\"") && line.contains(why), "{line}");
    }
    grow(&mut waiting, "last");
}

/// Starts a session of exact tracking, after the previous session has ended.
fn again(waiting: &Waiting) -> Session {
    let start = Instant::now();
    loop {
        let (session, line) = Session::ask(waiting, ",\"sample_bytes\":0");
        if !line.contains("error") {
            return session;
        }
        assert!(start.elapsed() < PATIENCE, "{line}");
    }
}

#[test]
fn a_declared_wrapper_writes_recordings_on_request() {
    check_recordings(Waiting::start(command(victim("tracked"))));
}

#[test]
fn a_preloaded_library_writes_recordings_on_request() {
    check_recordings(Waiting::start(preloaded(victim("tracked"), "--wait-for-track")));
}

/// The lines of a log up to its end.
fn logged(waiting: &mut Waiting, members: &str, line: &str) -> Vec<String> {
    let mut log = Session::request(waiting, "dmd-log", members);
    assert_eq!(log.1, "{\"version\":1,\"sample_bytes\":0}\n");
    grow(waiting, line);
    log.0.0.get_mut().write_all(b"\n").unwrap();
    log.0.0.lines().map(Result::unwrap).collect()
}

/// The number of lines for allocations of this size.
fn logged_of(lines: &[String], size: u64) -> u64 {
    let end = format!(",\"requested\":{size}}}");
    lines.iter().filter(|line| line.ends_with(&end)).count() as u64
}

/// Checks that a hundredth of all allocations is in the log. The standard deviation of a number of rare events is its
/// square root.
fn assert_share(lines: &[String]) {
    let (found, expected) = (logged_of(lines, 107) as f64, young() as f64 / 100.0);
    assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{found}");
    let line: Value = serde_json::from_str(&lines[0]).unwrap();
    assert!(line["frame"].is_array() && line["timestamp"].is_f64() && line["size"].is_u64());
}

fn check_logs(mut waiting: Waiting) {
    assert!(waiting.requests().contains(&"dmd-log".to_owned()));
    // A short log states that entries are missing. A log of a share of all allocations lacks only the allocations
    // outside of the share.
    let lines = logged(&mut waiting, ",\"length\":10", "short");
    assert!(lines.iter().any(|line| line == "{\"overflowed\":true}"));
    assert!(logged_of(&lines, 107) < young());
    let lines = logged(&mut waiting, ",\"length\":1000000,\"per_million\":10000", "share");
    assert_share(&lines);
    // The log does not contain allocations of the thread that writes the lines.
    assert!((lines.len() as u64) < 2 * young() / 50, "{}", lines.len());
    assert_eq!(logged(&mut waiting, ",\"per_million\":0", "none").len(), 0);
    // A log that is long enough contains every allocation: some hundred megabytes of text.
    if std::env::var_os("THOROUGH").is_some() {
        let lines = logged(&mut waiting, ",\"length\":1000000", "all");
        assert_eq!((logged_of(&lines, 107), logged_of(&lines, 200)), (young(), young()));
    }
    // Two peers have one log each, and DMD waits again after the last log.
    let (first, _) = Session::request(&waiting, "dmd-log", "");
    let (second, _) = Session::request(&waiting, "dmd-log", "");
    let (_, busy) = Session::ask(&waiting, "");
    assert!(busy.contains("already"), "{busy}");
    drop(first);
    drop(second);
    drop(again(&waiting));
    for (members, why) in [
        (",\"length\":0", "between 1 and"),
        (",\"length\":2000000000", "memory is short"),
        (",\"per_million\":1000001", "not a number between 0 and 1"),
        (",\"per_million\":\"x\"", "not a request"),
    ] {
        let (_, line) = Session::request(&waiting, "dmd-log", members);
        assert!(line.contains("\"error\"") && line.contains(why), "{members}: {line}");
    }
    grow(&mut waiting, "last");
}

#[test]
fn a_declared_wrapper_streams_its_log() {
    check_logs(Waiting::start(command(victim("tracked"))));
}

#[test]
fn a_preloaded_library_streams_its_log() {
    check_logs(Waiting::start(preloaded(victim("tracked"), "--wait-for-track")));
}

/// A log of a process that DMD records from its start.
#[test]
fn a_recorded_process_streams_its_log() {
    let mut command = command(victim("tracked"));
    command.env("DMD", "--mode=live --stacks=full --quiet");
    let mut waiting = Waiting::start(command);
    for name in ["one", "two"] {
        let lines = logged(&mut waiting, ",\"length\":1000000,\"per_million\":10000", name);
        assert_share(&lines);
    }
}

/// A request for a sample is refused while a log is open: the log must contain every allocation.
#[test]
fn a_sample_waits_until_no_log_is_open() {
    let mut waiting = Waiting::start(command(victim("tracked")));
    let session = Session::begin(&waiting, 0);
    grow(&mut waiting, "log");
    drop(session.end());
    let (_, line) = Session::ask(&waiting, ",\"sample_bytes\":4096");
    assert!(line.contains("\"error\"") && line.contains("logs all its allocations"), "{line}");
    let session = Session::begin(&waiting, 0);
    grow(&mut waiting, "no-log");
    assert_eq!(of_size(&session.end(), 107), young());
    let session = Session::begin(&waiting, 4096);
    grow(&mut waiting, "sample");
    assert!(of_size(&session.end(), 107) > 0);
}

#[test]
fn a_declared_wrapper_records_on_request() {
    check_sessions(Waiting::start(command(victim("tracked"))));
}

#[test]
fn a_preloaded_library_records_on_request() {
    // The program declares a wrapper, and the preloaded engine records its blocks.
    check_sessions(Waiting::start(preloaded(victim("tracked"), "--wait-for-track")));
}

/// The number of blocks of `leaves.c`; `None` without a dump.
fn of_leaves(session: Session) -> Option<u64> {
    session.dump().map(|dump| of_size(&dump, 4321))
}

#[test]
fn a_process_that_ends_sends_its_dump() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "leaves");
    let start = || Waiting::start(preloaded(&program, "--wait-for-track"));
    // `execl` does not call a function of the library, so the library cannot send a dump.
    for (line, expected) in [("exit", Some(100)), ("execv", Some(100)), ("exec", None), ("_exit", None)] {
        let mut waiting = start();
        let session = Session::begin(&waiting, 0);
        writeln!(waiting.child.stdin.as_mut().unwrap(), "{line}").unwrap();
        assert_eq!(of_leaves(session), expected, "{line}");
        drop(waiting.child.stdin.take());
        assert!(waiting.child.wait().unwrap().success(), "{line}");
    }
    for (signal, expected) in [("TERM", Some(100)), ("INT", Some(100)), ("KILL", None)] {
        let mut waiting = start();
        let mut answers = waiting.output();
        let session = Session::begin(&waiting, 0);
        writeln!(waiting.child.stdin.as_mut().unwrap(), "vfork").unwrap();
        answers.read_line(&mut String::new()).unwrap();
        let pid = waiting.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        assert_eq!(of_leaves(session), expected, "{signal}");
        assert!(!waiting.child.wait().unwrap().success(), "{signal}");
    }
    // Outside of a session, the signal ends the process at once.
    let mut waiting = start();
    drop(Session::begin(&waiting, 0));
    let pid = waiting.child.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    assert_eq!(waiting.child.wait().unwrap().signal(), Some(15));
    // With only a wrapper, a dump is possible if the program ends by itself.
    let mut waiting = Waiting::start(command(victim("tracked")));
    let session = Session::begin(&waiting, 0);
    grow(&mut waiting, "grown");
    drop(waiting.child.stdin.take());
    let dump = session.dump().expect("a dump");
    assert_eq!(of_size(&dump, 200), 0);
    assert!(waiting.child.wait().unwrap().success());
}

/// A program that tries several paths for another program stays in its session. If only the system refuses to start
/// the program, the session ends, and the next session works.
#[test]
fn a_program_that_does_not_become_another_one_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "leaves");
    let mut waiting = Waiting::start(preloaded(&program, "--wait-for-track"));
    let mut answers = waiting.output();
    let mut ask = |waiting: &mut Waiting, line: &str| {
        writeln!(waiting.child.stdin.as_mut().unwrap(), "{line}").unwrap();
        while line != {
            let mut answer = String::new();
            answers.read_line(&mut answer).unwrap();
            answer.trim().to_owned()
        } {}
    };
    let session = Session::begin(&waiting, 0);
    ask(&mut waiting, "missing");
    ask(&mut waiting, "folder");
    assert_eq!(of_leaves(session), Some(200));
    let session = again(&waiting);
    ask(&mut waiting, "vfork");
    ask(&mut waiting, "vfork");
    assert_eq!(of_size(&session.end(), 4321), 200);
}

/// A peer that has closed the connection, or that does not read, cannot prevent the end of a process.
#[test]
fn a_process_ends_without_its_peer() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "leaves");
    for stays in [true, false] {
        let mut waiting = Waiting::start(preloaded(&program, "--wait-for-track"));
        let session = Session::begin(&waiting, 0);
        let kept = stays.then_some(session);
        writeln!(waiting.child.stdin.as_mut().unwrap(), "exit").unwrap();
        assert!(waiting.child.wait().unwrap().success(), "{stays}");
        drop(kept);
    }
}

#[test]
fn hostile_requests_get_one_line() {
    let mut waiting = Waiting::start(command(victim("tracked")));
    for members in
        [",\"sample_bytes\":\"1\"", ",\"sample_bytes\":-1", ",\"sample_bytes\":1e3", ",\"sample_bytes\":[]"]
    {
        let (_, line) = Session::ask(&waiting, members);
        assert!(line.contains("\"error\"") && line.ends_with("\"}\n"), "{members}: {line}");
    }
    // With the largest mean distance, no block is sampled, and the session still works.
    let session = Session::begin(&waiting, u64::MAX);
    grow(&mut waiting, "largest");
    assert_eq!(of_size(&session.end(), 107), 0);
    // This peer never ends its line.
    let mut session = Session::begin(&waiting, 0);
    _ = session.0.get_mut().write_all(&[b'x'; 5000]);
    let mut rest = Vec::new();
    _ = session.0.read_to_end(&mut rest);
    assert_eq!(rest, b"");
    grow(&mut waiting, "last");
}

/// The options in `$DMD` select a sample of the whole run, without a session.
#[test]
fn a_sampled_run_estimates_its_heap() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(victim("tracked"));
    command.env("DMD", "--mode=live --sample-bytes=2KiB --seed=1 --quiet");
    let mut waiting = Waiting::start(command);
    grow(&mut waiting, "grown");
    let path = folder.path().join("asked.json.gz");
    std::fs::write(&path, waiting.ask("dmd-dump")).unwrap();
    let dump = read_dump(&path);
    assert!(dump.get("statistics").is_none(), "a sample does not count allocations");
    let estimate = |size| of_size(&dump, size) as f64 * weight(size, 2048);
    assert!((estimate(107) / young() as f64 - 1.0).abs() < 0.12, "{}", estimate(107));
    assert!((estimate(3000) / 500.0 - 1.0).abs() < 0.5, "{}", estimate(3000));
    assert_eq!(of_size(&dump, 200), 0);
    // The peak is an estimate of the same heap.
    let peak = dump["peak"]["bytes"].as_f64().unwrap();
    assert!(peak > 0.8 * 107.0 * young() as f64, "{peak}");
}
