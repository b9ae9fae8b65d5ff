//! Recording that a request switches on and off in a running program.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use memory_report::dmd::sample::weight;
use serde_json::Value;

use crate::live::Waiting;
use crate::support::{command, count, preloaded, read_dump, victim};

const PATIENCE: Duration = Duration::from_secs(60);

/// Blocks of 107 bytes that the program has after each line.
const YOUNG: u64 = 160_000;

/// A session of tracking.
struct Session(BufReader<UnixStream>);

impl Session {
    /// Asks for a session, and returns it with the program's first answer.
    fn ask(waiting: &Waiting, members: &str) -> (Self, String) {
        let mut stream = UnixStream::connect(waiting.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
            .write_all(format!("{{\"version\":1,\"request\":\"dmd-track\"{members}}}\n").as_bytes())
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

    fn end(mut self) -> Value {
        self.0.get_mut().write_all(b"\n").unwrap();
        let mut text = String::new();
        GzDecoder::new(self.0).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
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
    assert!(refused(&waiting).contains("DMD records nothing"), "{}", refused(&waiting));

    grow(&mut waiting, "before");
    let session = Session::begin(&waiting, 0);
    grow(&mut waiting, "exact");
    let (_, busy) = Session::ask(&waiting, "");
    assert!(busy.contains("already"), "{busy}");
    let dump = session.end();
    assert_eq!(dump["invocation"]["mode"], "live");
    assert_eq!([of_size(&dump, 107), of_size(&dump, 200), of_size(&dump, 3000)], [YOUNG, 0, 0]);
    assert!(refused(&waiting).contains("DMD records nothing"));

    // The blocks of the first session end in the second one, in which they are unknown.
    for (name, mean) in [("fine", 4096), ("coarse", 65_536)] {
        let session = Session::begin(&waiting, mean);
        grow(&mut waiting, name);
        let dump = session.end();
        assert_eq!(dump["invocation"]["sampleBytes"], mean);
        assert_eq!([of_size(&dump, 200), of_size(&dump, 3000)], [0, 0]);
        let recorded = of_size(&dump, 107) as f64;
        let estimate = recorded * weight(107, mean);
        // The deviation of a number of rare events is its root.
        assert!((estimate / YOUNG as f64 - 1.0).abs() < 5.0 / recorded.sqrt(), "{mean}: {estimate}");
        let stacks = dump["blockList"].as_array().unwrap();
        assert!(stacks.iter().all(|block| block.get("alloc").is_some()), "each sampled block has a stack");
    }

    // A peer that hangs up ends its session.
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

/// A log says what every allocation was, which nobody knows of a sample.
#[test]
fn a_sample_waits_until_no_log_is_open() {
    let mut waiting = Waiting::start(command(victim("tracked")));
    let session = Session::begin(&waiting, 0);
    grow(&mut waiting, "log");
    drop(session.end());
    let (_, line) = Session::ask(&waiting, ",\"sample_bytes\":4096");
    assert!(line.contains("\"error\"") && line.contains("a log of all its allocations"), "{line}");
    let session = Session::begin(&waiting, 0);
    grow(&mut waiting, "no-log");
    assert_eq!(of_size(&session.end(), 107), YOUNG);
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
    // The program declares a wrapper, whose blocks the preloaded engine records.
    check_sessions(Waiting::start(preloaded(victim("tracked"), "--wait-for-track")));
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
    // The largest mean distance samples nothing, and works.
    let session = Session::begin(&waiting, u64::MAX);
    grow(&mut waiting, "largest");
    assert_eq!(of_size(&session.end(), 107), 0);
    // A peer that never ends its line.
    let mut session = Session::begin(&waiting, 0);
    _ = session.0.get_mut().write_all(&[b'x'; 5000]);
    let mut rest = Vec::new();
    _ = session.0.read_to_end(&mut rest);
    assert_eq!(rest, b"");
    grow(&mut waiting, "last");
}

/// A whole run under eight threads, without requests.
#[test]
fn a_sampled_run_estimates_its_heap() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(victim("tracked"));
    command.env("DMD", "--mode=live --sample-bytes=8KiB --quiet");
    let mut waiting = Waiting::start(command);
    grow(&mut waiting, "grown");
    let path = folder.path().join("asked.json.gz");
    std::fs::write(&path, waiting.ask("dmd-dump")).unwrap();
    let dump = read_dump(&path);
    assert!(dump.get("statistics").is_none(), "a sample does not count allocations");
    let estimate = |size| of_size(&dump, size) as f64 * weight(size, 8192);
    assert!((estimate(107) / YOUNG as f64 - 1.0).abs() < 0.12, "{}", estimate(107));
    assert!((estimate(3000) / 500.0 - 1.0).abs() < 0.5, "{}", estimate(3000));
    assert_eq!(of_size(&dump, 200), 0);
    // The peak is an estimate of the same heap.
    let peak = dump["peak"]["bytes"].as_f64().unwrap();
    assert!(peak > 0.8 * 107.0 * YOUNG as f64, "{peak}");
}
