//! Running programs, sockets that imitate programs, and the program `about-memory` that sends them requests.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tempfile::TempDir;

/// Processes that share a private folder of sockets.
pub(super) struct Herd {
    runtime: TempDir,
    /// The folder for the temporary files of all processes.
    temporary: TempDir,
    victims: Vec<Victim>,
}

struct Victim {
    child: Child,
    stdin: ChildStdin,
}

impl Herd {
    pub(super) fn new() -> Self {
        let runtime = tempfile::tempdir().unwrap();
        let folder = runtime.path().join("about-memory");
        fs::DirBuilder::new().mode(0o700).create(folder).unwrap();
        let temporary = tempfile::tempdir().unwrap();
        Self { runtime, temporary, victims: Vec::new() }
    }

    pub(super) fn path(&self) -> &Path {
        self.runtime.path()
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.path().join("about-memory")
    }

    /// Returns the names of the temporary files.
    pub(super) fn temporary(&self) -> Vec<String> {
        names(self.temporary.path())
    }

    /// Returns a command that uses this folder of sockets.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("XDG_RUNTIME_DIR", self.path())
            .env("TMPDIR", self.temporary.path())
            .env_remove("ABOUT_MEMORY")
            .env_remove("RUST_BACKTRACE")
            .current_dir(self.path());
        command
    }

    /// Starts a process with a task. Returns its process id.
    pub(super) fn start(&mut self, task: &str) -> u32 {
        let mut child = self
            .command(std::env::current_exe().unwrap())
            .args(["--exact", "live::victim::victim", "--nocapture", "--test-threads=1"])
            .env("VICTIM", task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("told ready")), "{task}: has ended");
        let pid = child.id();
        let stdin = child.stdin.take().unwrap();
        self.victims.push(Victim { child, stdin });
        pid
    }

    /// Lets a process do its next step, and waits until the step is done.
    pub(super) fn nudge(&mut self, pid: u32) {
        let victim = self.victims.iter_mut().find(|victim| victim.child.id() == pid).unwrap();
        victim.stdin.write_all(b"x").unwrap();
        victim.stdin.flush().unwrap();
    }

    pub(super) fn kill(&mut self, pid: u32) {
        let at = self.victims.iter().position(|victim| victim.child.id() == pid).unwrap();
        let mut victim = self.victims.remove(at);
        victim.child.kill().unwrap();
        victim.child.wait().unwrap();
    }

    /// Creates a socket without a process. `answer` handles each connection.
    pub(super) fn pretend(&self, pid: u32, answer: impl Fn(UnixStream) + Send + 'static) -> PathBuf {
        let path = self.folder().join(format!("{pid}-1.sock"));
        let listener = UnixListener::bind(&path).unwrap();
        thread::spawn(move || listener.incoming().flatten().for_each(answer));
        path
    }

    /// Like [`pretend`](Self::pretend), with a socket that reads each request and sends `answer`.
    pub(super) fn answer(&self, pid: u32, answer: impl Into<Vec<u8>>) {
        let answer = answer.into();
        self.pretend(pid, move |mut stream| {
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            // The client may have closed the connection.
            let _ = stream.write_all(&answer);
        });
    }

    pub(super) fn about_memory(&self, arguments: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_about-memory")).args(arguments).output().unwrap()
    }

    /// Returns the stdout of a successful [`about_memory`](Self::about_memory).
    pub(super) fn shown(&self, arguments: &[&str]) -> String {
        let output = self.about_memory(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts the program on a terminal with this many rows and columns. Returns the other end of the terminal.
    pub(super) fn on_terminal(&self, arguments: &[&str], rows: u16, columns: u16) -> (Child, File) {
        self.on_terminal_with(arguments, rows, columns, false)
    }

    /// Like [`on_terminal`](Self::on_terminal), but errors also go to the terminal.
    pub(super) fn on_whole_terminal(&self, arguments: &[&str], rows: u16, columns: u16) -> (Child, File) {
        self.on_terminal_with(arguments, rows, columns, true)
    }

    fn on_terminal_with(
        &self,
        arguments: &[&str],
        rows: u16,
        columns: u16,
        also_errors: bool,
    ) -> (Child, File) {
        // A process that another test starts must not keep the terminal open.
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let own = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&own, size).unwrap();
        let child = self
            .command(env!("CARGO_BIN_EXE_about-memory"))
            .args(arguments)
            .stdin(own.try_clone().unwrap())
            .stderr(if also_errors { own.try_clone().unwrap().into() } else { Stdio::piped() })
            .stdout(own)
            .spawn()
            .unwrap();
        (child, File::from(terminal))
    }

    /// Opens the terminal of a program, as the program sees it.
    pub(super) fn terminal_of(&self, child: &Child) -> File {
        let path = format!("/proc/{}/fd/0", child.id());
        File::options().read(true).write(true).open(path).unwrap()
    }

    /// Starts the program without waiting for it.
    pub(super) fn running(&self, arguments: &[&str]) -> Child {
        self.command(env!("CARGO_BIN_EXE_about-memory"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

impl Drop for Herd {
    fn drop(&mut self) {
        for victim in &mut self.victims {
            // The process may have ended.
            let _ = victim.child.kill();
            let _ = victim.child.wait();
        }
    }
}

/// Returns the names of all files in a folder.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

pub(super) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Reads a stream to its end.
pub(super) fn drain(mut stream: UnixStream) {
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Repeats a search until it has a result.
pub(super) fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1000 {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("waited in vain");
}
