//! A program that answers while it runs. The programs are this one, started again.

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

/// Longer than anything here should take, so that a test that fails does so for a reason.
const PATIENCE: Duration = Duration::from_secs(60);

/// This program, started again to do as told, with a folder for sockets of its own.
struct Victim {
    child: Child,
    /// Dropped to end the program.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    runtime: TempDir,
}

impl Victim {
    /// Starts one and waits until it is `ready`.
    fn start(task: &str) -> Self {
        Self::start_with(task, |_, _| {})
    }

    fn start_with(task: &str, prepare: impl FnOnce(&mut Command, &Path)) -> Self {
        Self::told(task, prepare).0
    }

    /// Also gives what it told before it was ready.
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

    /// Reads what the program says up to a line that starts so, and gives the rest of that.
    fn wait_for(&mut self, start: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.stdout.read_line(&mut line).unwrap();
            assert!(read > 0, "the program has ended without saying {start:?}");
            // The test harness does not end its own line before.
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

    /// Sends something and reads the whole answer.
    fn ask_raw(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        // The program may answer and hang up before it has seen all.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    /// The answer to a request of this name and further keys, as text.
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

    /// Has the program end by itself; its status, and what it said on stderr.
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
        // SAFETY: no precondition; the child was not waited for, so its number is still its own.
        unsafe { libc::kill(self.pid() as i32, signal) };
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until there is what is looked for.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn amount(set: &ReportSet, path: &str) -> Option<i64> {
    set.iter().find(|report| report.path == path).map(|report| report.amount)
}

fn hang_up(stream: &UnixStream) {
    stream.shutdown(Shutdown::Both).unwrap();
}
