//! SIGTERM and SIGINT: if the program has no handler, DMD writes the last dump and then ends the process.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{c_program, command, count, preloaded, read_dump, succeed};

const OPTIONS: &str = "--stacks=full --quiet --dump-at-exit --output=dump.json";

/// Starts a command and waits until it prints that it is ready.
fn start(command: &mut Command, folder: &Path) -> Child {
    let command = command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n", "{:?}", child.wait());
    child
}

fn send(child: &Child, signal: i32) {
    // SAFETY: the function only sends a signal. The process was not waited for, so its number is still valid.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

fn end_of(mut child: Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("the process does not end");
        }
        sleep(Duration::from_millis(5));
    }
}

fn blocks(folder: &Path) -> u64 {
    count(&read_dump(folder.join("dump.json")), |block| block["req"] == 77 && block["alloc"].is_string())
}

#[test]
fn the_dump_is_written_and_the_parent_sees_the_signal() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "ended");
    for how in ["waits", "parks", "busy", "threads", "cleans", "returns"] {
        for signal in [libc::SIGTERM, libc::SIGINT] {
            let child = start(preloaded(&program, OPTIONS).arg(how), folder.path());
            send(&child, signal);
            let status = end_of(child);
            assert_eq!(status.signal(), Some(signal), "{how}: {status}");
            assert_eq!(blocks(folder.path()), 1000, "{how}");
            std::fs::remove_file(folder.path().join("dump.json")).unwrap();
        }
    }
}

/// The signal may arrive at any point of an allocation.
#[test]
fn an_interrupted_allocation_ends_first() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "ended");
    for round in 0..30 {
        let child = start(preloaded(&program, OPTIONS).arg("busy"), folder.path());
        sleep(Duration::from_micros(round * 137));
        send(&child, libc::SIGTERM);
        assert_eq!(end_of(child).signal(), Some(libc::SIGTERM));
        assert_eq!(blocks(folder.path()), 1000);
        std::fs::remove_file(folder.path().join("dump.json")).unwrap();
    }
}

#[test]
fn a_handler_of_the_program_wins() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "ended");
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let child = start(preloaded(&program, OPTIONS).arg("handles"), folder.path());
        send(&child, signal);
        assert_eq!(end_of(child).code(), Some(5));
        assert!(!folder.path().join("dump.json").exists(), "_exit writes no dump");
    }
}

#[test]
fn a_program_that_ignores_them_goes_on_to() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "ended");
    let mut command = preloaded("/bin/bash", OPTIONS);
    command.args(["-c", "trap '' TERM INT; exec \"$0\" ignores"]).arg(&program);
    let mut child = start(&mut command, folder.path());
    send(&child, libc::SIGTERM);
    send(&child, libc::SIGINT);
    sleep(Duration::from_millis(100));
    drop(child.stdin.take());
    assert_eq!(end_of(child).code(), Some(0));
    assert_eq!(blocks(folder.path()), 1000, "the dump of a normal end");
}

/// Starts a program whose dump goes into a pipe. The test does not read the pipe, so the dump waits in the middle.
fn start_with_pipe(folder: &Path, how: &str) -> (Child, File) {
    let program = c_program(folder, "ended");
    let pipe = folder.join(format!("pipe-{how}"));
    succeed(command("mkfifo").arg(&pipe));
    let options = format!("--mode=scan --quiet --dump-at-exit --output={}", pipe.display());
    // Opens the pipe for reading before the program starts: a dump into a pipe without a reader fails.
    let pipe = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(pipe).unwrap();
    (start(preloaded(&program, &options).arg(how), folder), pipe)
}

fn wait_for_dump(pipe: &mut File) {
    let begun = Instant::now();
    while !matches!(pipe.read(&mut [0]), Ok(1)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the dump does not start");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (child, mut pipe) = start_with_pipe(folder.path(), "waits");
    send(&child, libc::SIGTERM);
    wait_for_dump(&mut pipe);
    // The engine counts signals that arrive within 250 ms as one request, so the test waits between the two SIGINTs.
    send(&child, libc::SIGINT);
    sleep(Duration::from_millis(400));
    let second = Instant::now();
    send(&child, libc::SIGINT);
    assert_eq!(end_of(child).signal(), Some(libc::SIGINT));
    assert!(second.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_signal_ends_a_process_that_writes_its_last_dump() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let (child, mut pipe) = start_with_pipe(folder.path(), "ends");
        wait_for_dump(&mut pipe);
        send(&child, signal);
        assert_eq!(end_of(child).signal(), Some(signal));
        std::fs::remove_file(folder.path().join("pipe-ends")).unwrap();
    }
    // The program's own handler ends the program after the first signal. A second signal within 250 ms counts as the
    // same request, so the test waits longer before it sends the second signal.
    let (child, mut pipe) = start_with_pipe(folder.path(), "ends_later");
    send(&child, libc::SIGTERM);
    wait_for_dump(&mut pipe);
    sleep(Duration::from_millis(400));
    send(&child, libc::SIGTERM);
    assert_eq!(end_of(child).signal(), Some(libc::SIGTERM));
    // The program ignores the signals.
    let (child, mut pipe) = start_with_pipe(folder.path(), "ends_deaf");
    wait_for_dump(&mut pipe);
    send(&child, libc::SIGTERM);
    sleep(Duration::from_millis(100));
    drop(pipe);
    assert_eq!(end_of(child).code(), Some(7));
}

/// The names of dumps in a folder that are still being written.
fn incomplete(folder: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("incomplete-")).collect()
}

/// The dump of an earlier run stays, and an incomplete dump does not get its name.
#[test]
fn a_dump_that_is_cut_off_has_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "ended");
    let dump = folder.path().join("dump.json.gz");
    std::fs::write(&dump, "earlier").unwrap();
    let options = "--mode=scan --quiet --dump-at-exit --output=dump.json.gz";
    for (signal, left) in [(libc::SIGTERM, 0), (libc::SIGKILL, 1)] {
        let child = start(preloaded(&program, options).args(["waits", "300000"]), folder.path());
        send(&child, libc::SIGTERM);
        let begun = Instant::now();
        while incomplete(folder.path()).is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the dump does not start");
            sleep(Duration::from_millis(1));
        }
        // Stop the process, so that the dump cannot become complete.
        send(&child, libc::SIGSTOP);
        sleep(Duration::from_millis(400));
        send(&child, signal);
        send(&child, libc::SIGCONT);
        assert_eq!(end_of(child).signal(), Some(signal));
        assert_eq!(std::fs::read(&dump).unwrap(), b"earlier");
        assert_eq!(incomplete(folder.path()).len(), left, "{signal}");
    }
}

/// If no dump is written at the end, the signal ends the process at once.
#[test]
fn without_a_last_dump_the_signal_has_its_default_action() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "ended");
    let child = start(preloaded(&program, "--quiet --output=dump.json").arg("waits"), folder.path());
    send(&child, libc::SIGTERM);
    assert_eq!(end_of(child).signal(), Some(libc::SIGTERM));
    assert!(!folder.path().join("dump.json").exists());
}
