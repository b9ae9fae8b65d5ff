//! Dumps that another process requests: through the socket of `memory-reporter`, and by its signals.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{c_program, command, count, frames, preloaded, read_dump, succeed, victim};

const PATIENCE: Duration = Duration::from_secs(60);

/// A running program that answers requests.
pub(crate) struct Waiting {
    pub(crate) child: Child,
    output: Option<BufReader<ChildStdout>>,
    folder: TempDir,
}

impl Waiting {
    pub(crate) fn start(mut command: Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        command
            .env("ABOUT_MEMORY", format!("listen,signals={}", folder.path().display()))
            .env("XDG_RUNTIME_DIR", folder.path())
            .env("TMPDIR", folder.path())
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { child, output: Some(output), folder }
    }

    /// The program's output after its first line.
    pub(crate) fn output(&mut self) -> BufReader<ChildStdout> {
        self.output.take().unwrap()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        let sockets = fs::read_dir(self.folder.path().join("about-memory")).unwrap();
        sockets.map(|entry| entry.unwrap().path()).next().unwrap()
    }

    pub(crate) fn ask(&self, request: &str) -> Vec<u8> {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{{\"version\":1,\"request\":\"{request}\"}}\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        let hello: Value = serde_json::from_slice(&self.ask("hello")).unwrap();
        let requests = hello["requests"].as_array().unwrap();
        requests.iter().map(|request| request.as_str().unwrap().to_owned()).collect()
    }

    fn amount(&self, path: &str) -> Option<i64> {
        let mut text = Vec::new();
        GzDecoder::new(&*self.ask("report")).read_to_end(&mut text).unwrap();
        let reports: Value = serde_json::from_slice(&text).unwrap();
        let mut reports = reports["reports"].as_array().unwrap().iter();
        reports.find(|report| report["path"] == path).map(|report| report["amount"].as_i64().unwrap())
    }

    /// Waits until the folder has files of this kind, and returns them.
    pub(crate) fn saved(&self, kind: &str) -> Vec<PathBuf> {
        let start = Instant::now();
        loop {
            let found = named(self.folder.path(), kind);
            if !found.is_empty() || start.elapsed() > PATIENCE {
                return found;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self) {
        // SAFETY: the call has no precondition. The child was not waited for, so no other process has its number.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGRTMIN()) };
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn named(folder: &Path, kind: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(kind)).collect()
}

fn check(path: &Path) {
    let dump = read_dump(path);
    let reports = |block: &Value| block.get("reps").map_or(0, |reports| reports.as_array().unwrap().len());
    assert_eq!(count(&dump, |block| block["req"] == 10_000 && reports(block) == 1), 100);
    assert_eq!(count(&dump, |block| reports(block) == 2), 0);
}

fn check_all(command: Command) {
    let waiting = Waiting::start(command);
    let heap = waiting.amount("heap-allocated").unwrap();
    let pages = waiting.amount("explicit/pages").unwrap();
    assert!((pages..pages + 3_000_000).contains(&heap), "{pages} of {heap}");
    assert!(waiting.requests().contains(&"dmd-dump".to_owned()));
    // Another user could create files with these names to prevent dumps, but cannot guess the name that a dump has
    // while DMD writes it.
    let taken = |number| waiting.folder.path().join(format!("dmd-{}-{number}.json.gz", waiting.child.id()));
    (0..4).for_each(|number| fs::write(taken(number), "taken").unwrap());
    // The second dump comes from a process that has dumped before.
    for number in 0..2 {
        let answer = waiting.ask("dmd-dump");
        assert_eq!(answer[..2], [0x1f, 0x8b], "{}", String::from_utf8_lossy(&answer));
        let path = waiting.folder.path().join(format!("asked-{number}.json.gz"));
        fs::write(&path, answer).unwrap();
        check(&path);
    }
    (0..4).for_each(|number| fs::remove_file(taken(number)).unwrap());
    assert!(named(waiting.folder.path(), "dmd-").is_empty(), "no file must remain");

    waiting.signal();
    let dumps = waiting.saved("dmd-");
    let [dump] = &*dumps else { panic!("{dumps:?}") };
    check(dump);
    let reports = waiting.saved("memory-report-");
    let [report] = &*reports else { panic!("{reports:?}") };
    let rest = |path: &Path, kind| {
        path.file_name().unwrap().to_str().unwrap().strip_prefix(kind).unwrap().to_owned()
    };
    assert_eq!(rest(dump, "dmd-"), rest(report, "memory-report-"));
    assert!(named(waiting.folder.path(), "incomplete-").is_empty());
}

const OPTIONS: &str = "--stacks=full --quiet";

#[test]
fn of_the_preloaded_engine() {
    check_all(preloaded(victim("waiting"), OPTIONS));
}

#[test]
fn of_the_wrapper() {
    let mut command = command(victim("waiting"));
    command.env("DMD", OPTIONS);
    check_all(command);
}

#[test]
fn none_if_nothing_is_recorded() {
    let waiting = Waiting::start(command(victim("waiting")));
    assert!(!waiting.requests().contains(&"dmd-dump".to_owned()));
    assert_eq!(waiting.amount("heap-allocated"), None, "the wrapper must not count");
    let answer = String::from_utf8(waiting.ask("dmd-dump")).unwrap();
    assert!(answer.contains("unknown request"), "{answer}");
    waiting.signal();
    assert_eq!(waiting.saved("memory-report-").len(), 1);
    assert!(named(waiting.folder.path(), "dmd-").is_empty());
}

/// The library's own copy of `memory-reporter` answers for a program without that crate.
#[test]
fn of_a_program_without_reporters() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "ended");
    let mut command = preloaded(&program, OPTIONS);
    command.arg("waits");
    let waiting = Waiting::start(command);
    assert!(waiting.requests().contains(&"dmd-dump".to_owned()));
    let heap = waiting.amount("heap-allocated").unwrap();
    assert!((77_000..1_000_000).contains(&heap), "{heap}");
    let amounts: Value = serde_json::from_slice(&waiting.ask("amounts")).unwrap();
    assert!((77_000..1_000_000).contains(&amounts["heap_allocated"].as_u64().unwrap()), "{amounts}");
    let path = waiting.folder.path().join("asked.json.gz");
    fs::write(&path, waiting.ask("dmd-dump")).unwrap();
    assert_eq!(count(&read_dump(&path), |block| block["req"] == 77), 1000);
}

/// The program may close descriptors that it did not open, and reuse their numbers.
#[test]
fn the_library_never_answers_on_another_socket() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "closes_all");
    let sockets = tempfile::tempdir().unwrap();
    let mut command = preloaded(&program, OPTIONS);
    let output = succeed(command.env("ABOUT_MEMORY", "listen").env("XDG_RUNTIME_DIR", sockets.path()));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "nobody else accepted\n");
}

/// A process that the program forks inherits the descriptors that keep the copy alive.
#[test]
fn a_copy_ends_although_the_program_has_forked() {
    let folder = tempfile::tempdir().unwrap();
    let mut waiting = Waiting::start(preloaded(c_program(folder.path(), "forks_on_line"), "--quiet"));
    let mut stream = UnixStream::connect(waiting.socket()).unwrap();
    stream.write_all(b"{\"version\":1,\"request\":\"dmd-copy\"}\n").unwrap();
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    let copy = PathBuf::from(format!("/proc/{}", answer["pid"]));
    assert_eq!(fs::read_to_string(copy.join("comm")).unwrap(), "dmd-copy\n");
    assert_eq!(fs::read_dir(copy.join("fd")).unwrap().count(), 1, "the copy must keep only its socket");

    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < PATIENCE, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let main = waiting.child.id();
    waiting.child.stdin.as_mut().unwrap().write_all(b"fork\n").unwrap();
    let children = || fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap();
    until("the program forks", &|| !children().is_empty());
    drop(stream);
    until("the copy ends", &|| !copy.exists());
}

/// Blocks that DMD or the C library allocates for an answer are not blocks of the program.
#[test]
fn dumps_have_the_program_s_blocks_only() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "ended");
    let mut command = preloaded(&program, "--mode=live --stacks=full --quiet");
    command.arg("waits");
    let waiting = Waiting::start(command);
    let path = folder.path().join("asked.json.gz");
    for _ in 0..3 {
        waiting.ask("report");
        fs::write(&path, waiting.ask("dmd-dump")).unwrap();
    }
    let dump = read_dump(&path);
    let blocks = dump["blockList"].as_array().unwrap();
    assert_eq!(count(&dump, |block| block["req"] == 77), 1000);
    for block in blocks.iter().filter(|block| block["alloc"].is_string()) {
        let frames = frames(&dump, &block["alloc"]);
        assert!(frames.iter().any(|frame| frame.contains(program.to_str().unwrap())), "{block} {frames:#?}");
    }
}
