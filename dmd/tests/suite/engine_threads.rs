//! Programs run as they would without the engine's own threads: the C library does not count these threads, and they
//! end when a call needs a process with one thread. A program also does not find a copy of the process that a reader
//! has requested.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::live::Waiting;
use crate::recordings::replay::Recording;
use crate::support::{c_program, command, preloaded, run};
use crate::tracking::Session;

/// Options with which the engine has its own threads.
const WITH_THREADS: [&str; 3] =
    ["--quiet --record=r-%p.dmdrec", "--quiet --wait-for-track", "--quiet --mode=live --stacks=full"];

const PATIENCE: Duration = Duration::from_secs(60);

fn listening(program: &Path, options: &str, folder: &Path) -> Command {
    let mut command = preloaded(program, options);
    command.env("ABOUT_MEMORY", "listen").env("XDG_RUNTIME_DIR", folder).current_dir(folder);
    command
}

/// The program has the same output and status with and without the engine's threads.
fn same(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), name);
    let plain = run(command(&program).current_dir(folder.path()));
    for options in WITH_THREADS {
        let recorded = run(&mut listening(&program, options, folder.path()));
        assert_eq!(recorded.status, plain.status, "{options}: {recorded:?}");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&recorded.stdout), text(&plain.stdout), "{options}");
        assert_eq!(text(&recorded.stderr), text(&plain.stderr), "{options}");
    }
}

#[test]
fn a_process_ends_with_its_last_thread() {
    same("ends_main");
}

#[test]
fn a_recording_goes_on_after_the_first_thread() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "ends_main");
    let output = run(&mut listening(&program, "--quiet --record=r.dmdrec", folder.path()));
    assert_eq!(output.stdout, b"ended\n", "{output:?}");
    let state = Recording::read(folder.path().join("r.dmdrec")).replay();
    assert_eq!(state.blocks.values().filter(|block| block.requested == 12345).count(), 1);
}

#[test]
fn a_program_with_one_thread_stays_one() {
    same("one_thread");
}

/// Sandboxes count the threads before they install filters.
#[test]
fn a_sandbox_counts_one_thread() {
    same("sandbox");
}

#[test]
fn handlers_fork_in_the_allocator() {
    same("handler_forks_in_realloc");
}

/// The user ids of all threads of a process.
fn users(process: u32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let user = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap().trim().to_owned()
    };
    threads.map(|thread| user(thread.unwrap())).collect()
}

/// No thread keeps rights that the program drops, and the user who started the program can still send requests to it.
#[test]
fn a_program_that_becomes_another_user_answers() {
    if users(std::process::id())[0] != "0\t0\t0\t0" {
        eprintln!("not tested: only root can become another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "gives_up");
    for options in ["--quiet", "--quiet --record=r.dmdrec"] {
        let waiting = Waiting::start(preloaded(&program, options));
        for user in users(waiting.child.id()) {
            assert_eq!(user, "65534\t65534\t65534\t65534", "{options}");
        }
        let dump = waiting.ask("dmd-dump");
        assert_eq!(dump.get(..2), Some(&[0x1f, 0x8b][..]), "{options}: {}", String::from_utf8_lossy(&dump));
    }
}

/// `setuid` waits at most 10 s for an engine thread that writes. After the write, the thread also gets the new rights.
#[test]
fn a_thread_that_writes_loses_its_rights_later() {
    if users(std::process::id())[0] != "0\t0\t0\t0" {
        eprintln!("not tested: only root can become another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "gives_up_late");
    let pipe = folder.path().join("r.dmdrec");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Opened for reading and writing, so that the open call does not wait.
    let mut reader = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let mut command = preloaded(&program, "--quiet --record=r.dmdrec");
    let mut child =
        command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        line.trim().to_owned()
    };
    assert_eq!(line(), "filled");
    writeln!(child.stdin.as_mut().unwrap()).unwrap();
    assert_eq!(line(), "became");
    let read = std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while reader.read(&mut bytes).is_ok_and(|read| !bytes[..read].ends_with(b"end of the test")) {}
    });
    let nobody = "65534\t65534\t65534\t65534".to_owned();
    let start = Instant::now();
    while users(child.id()) != [&*nobody, &*nobody] {
        assert!(start.elapsed() < PATIENCE, "{:?}", users(child.id()));
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    fs::File::options().write(true).open(&pipe).unwrap().write_all(b"end of the test").unwrap();
    read.join().unwrap();
}

/// For a while, the system has no room for a thread. Afterwards, the engine thread continues.
#[test]
fn a_thread_goes_on_when_there_is_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "no_threads");
    let output = run(preloaded(&program, "--quiet --record=r.dmdrec").current_dir(folder.path()));
    assert!(output.status.success(), "{output:?}");
    let expected = if users(std::process::id())[0] == "0\t0\t0\t0" { "2 1 2\n" } else { "2 2 2\n" };
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

/// The child's file contains all events even if the child allocates nothing more: it may be killed at any time.
#[test]
fn a_quiet_child_of_a_fork_is_recorded() {
    for arguments in [&[][..], &["allocates"]] {
        let folder = tempfile::tempdir().unwrap();
        let program = c_program(folder.path(), "quiet_child");
        let mut parent = preloaded(&program, "--quiet --record=r-%p.dmdrec")
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let file = folder.path().join(format!("r-{}.dmdrec", line.trim()));
        let begun = || {
            // The file is empty before its first bytes are written.
            let about = fs::metadata(&file).ok().filter(|about| about.len() > 0);
            let recording = about.map(|_| Recording::read(&file));
            recording.map_or(0, |recording| recording.replay().blocks.len())
        };
        let start = Instant::now();
        while begun() < 5000 {
            assert!(start.elapsed() < PATIENCE, "{} of 5000 blocks", begun());
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(parent.stdin.take());
        assert!(parent.wait().unwrap().success());
    }
}

/// A handler that jumps out of the engine leaves no lock held.
#[test]
#[cfg(target_arch = "x86_64")]
fn handlers_jump_out() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "jumps_out");
    // A single step takes some microseconds, and the recording needs many small steps to fill its buffers.
    for (options, calls) in [
        ("--quiet --mode=live --stacks=full", "80"),
        ("--quiet --mode=scan", "80"),
        ("--quiet --record=r.dmdrec", "25"),
    ] {
        let output = run(preloaded(&program, options).arg(calls).current_dir(folder.path()));
        assert!(output.status.success(), "{options}: {output:?}");
        assert_eq!(output.stdout, b"jumped\n", "{options}");
    }
}

#[test]
fn a_program_does_not_find_a_copy_among_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let program = c_program(folder.path(), "finds_children");
    let mut waiting = Waiting::start(preloaded(&program, "--quiet"));
    let mut answers = waiting.output();
    let mut check = |waiting: &mut Waiting, calls: &[&str], expected: &str| {
        for call in calls {
            writeln!(waiting.child.stdin.as_mut().unwrap(), "{call}").unwrap();
            let mut line = String::new();
            answers.read_line(&mut line).unwrap();
            assert_eq!(line.trim(), expected, "{call}");
        }
    };
    let all = ["waitpid", "wait4", "waitid"];
    check(&mut waiting, &all, "none");
    let (session, line) = Session::request(&waiting, "dmd-copy", "");
    let copied: serde_json::Value = serde_json::from_str(&line).unwrap();
    check(&mut waiting, &all, "none");
    check(&mut waiting, &["block"], "none");
    check(&mut waiting, &["start"], "running");
    check(&mut waiting, &all, "running");
    // The copy ends, and no process has waited for it yet.
    assert!(Command::new("kill").args(["-9", &copied["pid"].to_string()]).status().unwrap().success());
    while !fs::read_to_string(format!("/proc/{}/stat", copied["pid"])).is_ok_and(|stat| stat.contains(") Z "))
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    check(&mut waiting, &["waitid", "waitpid", "wait4"], "running");
    check(&mut waiting, &["end", "block"], "child");
    drop(session);
    check(&mut waiting, &all, "none");
}
