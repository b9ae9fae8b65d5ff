//! A program that answers while it runs. The tests start this test program again as that program.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod children;
mod folders;
mod peers;
mod requests;
mod signals;
mod victim;

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use memory_reporter::ReportSet;
use memory_reporter::file::{self, ReadOptions};
use tempfile::TempDir;

/// The time limit of a step. A step of these tests exceeds it only because of a fault.
const PATIENCE: Duration = Duration::from_secs(60);

/// This program, started again with a task. It has its own folder for sockets.
struct Victim {
    child: Child,
    /// Dropping it ends the program.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    runtime: TempDir,
}

impl Victim {
    /// Starts a program and waits until it prints `ready`.
    fn start(task: &str) -> Self {
        Self::start_with(task, |_, _| {})
    }

    fn start_with(task: &str, prepare: impl FnOnce(&mut Command, &Path)) -> Self {
        Self::told(task, prepare).0
    }

    /// Like `start`, but also returns the lines that the program prints before it is ready.
    fn told(task: &str, prepare: impl FnOnce(&mut Command, &Path)) -> (Self, Vec<String>) {
        let runtime = tempfile::tempdir().unwrap();
        // The command of an emulator, if the tests are built for another processor.
        let runner = std::env::var("PROGRAM_RUNNER").unwrap_or_default();
        let this = std::env::current_exe().unwrap();
        let mut words = runner.split_whitespace().map(OsStr::new).chain([this.as_os_str()]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        command
            .args(["--exact", "victim::victim", "--nocapture", "--test-threads=1"])
            .env_remove("ABOUT_MEMORY")
            .env_remove("RUST_BACKTRACE")
            .env("XDG_RUNTIME_DIR", runtime.path())
            .env("TMPDIR", runtime.path())
            .env("VICTIM", task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        prepare(&mut command, runtime.path());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut victim = Self { child, stdin, stdout, runtime };
        let mut told = Vec::new();
        loop {
            let line = victim.wait_for("told ");
            if line == "ready" {
                return (victim, told);
            }
            told.push(line);
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads the program's output up to a line with this start, and returns the remainder of the line.
    fn wait_for(&mut self, start: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.stdout.read_line(&mut line).unwrap();
            assert!(read > 0, "the program has ended without printing {start:?}");
            // The test harness may have printed the start of the same line.
            if let Some(at) = line.find(start) {
                return line[at + start.len()..].trim().to_owned();
            }
        }
    }

    fn folder(&self) -> PathBuf {
        self.runtime.path().join("about-memory")
    }

    fn sockets(&self) -> Vec<PathBuf> {
        fs::read_dir(self.folder()).map_or(Vec::new(), |entries| {
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().unwrap() == "sock")
                .collect()
        })
    }

    fn socket(&self) -> PathBuf {
        let [socket] = &*self.sockets() else { panic!("{:?}", self.sockets()) };
        socket.clone()
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends `request` and reads the whole answer.
    fn ask_raw(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        // The program may answer and hang up before it has read all bytes.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// The answer, as text, to a request with this name and further keys.
    fn ask(&self, request: &str) -> String {
        let line = format!("{{\"version\":1,\"request\":{request}}}\n");
        String::from_utf8(self.ask_raw(line.as_bytes())).unwrap()
    }

    fn report(&self, keys: &str) -> ReportSet {
        let answer = self.ask_for_report(keys);
        assert_eq!(answer[..2], [0x1f, 0x8b], "{}", String::from_utf8_lossy(&answer));
        file::read_from(&*answer, &ReadOptions::default()).unwrap()
    }

    fn ask_for_report(&self, keys: &str) -> Vec<u8> {
        self.ask_raw(format!("{{\"version\":1,\"request\":\"report\"{keys}}}\n").as_bytes())
    }

    /// Lets the program end by itself. Returns its status and its output on stderr.
    fn end(mut self) -> (ExitStatus, String) {
        self.stop()
    }

    fn stop(&mut self) -> (ExitStatus, String) {
        drop(self.stdin.take());
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap(), stderr)
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the function has no precondition. The child has not been waited for, so its process number is still
        // valid.
        unsafe { libc::kill(self.pid() as i32, signal) };
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Repeats `look` until it returns a value.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "the time limit has ended without {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn amount(set: &ReportSet, path: &str) -> Option<i64> {
    set.iter().find(|report| report.path == path).map(|report| report.amount)
}

fn hang_up(stream: &UnixStream) {
    stream.shutdown(Shutdown::Both).unwrap();
}
