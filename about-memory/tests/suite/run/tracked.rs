//! `about-memory track` with programs that end or become another program in the meantime.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{command, compile, libdmd, stderr};

/// Allocates until the file `end` exists. Then it returns, or becomes another program. It forks once when the file
/// `fork` exists.
const ENDS: &str = "
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void *grow(void) { return malloc(4321); }
int main(int count, char **words) {
    int forked = 0;
    printf(\"%d\\n\", getpid());
    fflush(stdout);
    while (grow() && access(\"end\", F_OK)) {
        usleep(500);
        if (!forked && !access(\"fork\", F_OK)) {
            if ((forked = fork()) == 0) for (;;) pause();
            FILE *file = fopen(\"child\", \"w\");
            fprintf(file, \"%d\", forked);
            fclose(file);
            rename(\"child\", \"forked\");
        }
    }
    if (count > 1) execvp(\"sleep\", (char *[]){\"sleep\", \"1000\", NULL});
    return 0;
}
";

fn start(folder: &Path, arguments: &[&str]) -> (Child, Pid) {
    compile(folder, "ends", ENDS, &["-O1", "-rdynamic", "-w"]);
    let library = ["--library", libdmd().to_str().unwrap(), "--wait-for-track", "./ends"];
    let mut command = command(folder, &[&library, arguments].concat());
    let mut child = command.env("XDG_RUNTIME_DIR", folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    (child, Pid::from_raw(pid.trim().parse().unwrap()).unwrap())
}

fn track(folder: &Path, pid: Pid, arguments: &[&str]) -> Command {
    let mut track = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    track.args(["track", &pid.as_raw_nonzero().to_string()]).args(arguments).current_dir(folder);
    track.env("XDG_RUNTIME_DIR", folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    track
}

fn wait_until(mut what: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(5));
    }
}

/// Starts to track, and returns as soon as the process is tracked.
fn begin(folder: &Path, pid: Pid) -> Child {
    let begin = || track(folder, pid, &["--exact", "-o", "d.json.gz"]).spawn().unwrap();
    let mut tracking = begin();
    // Only one session can run at a time, so one of the two requests is refused.
    wait_until(|| {
        let is_refused = !track(folder, pid, &["--seconds", "0.001", "-o", "x"]).status().unwrap().success();
        let is_waiting = tracking.try_wait().unwrap().is_none();
        if !is_waiting {
            tracking = begin();
        }
        is_refused && is_waiting
    });
    tracking
}

fn end(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

/// A child of the program has a copy of the connection, and continues to run.
#[test]
fn a_recording_has_what_a_program_did_up_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (mut program, pid) = start(folder.path(), &[]);
    fs::write(at("r.dmdrec"), "old").unwrap();
    let tracking = track(folder.path(), pid, &["--record", "r.dmdrec"]).spawn().unwrap();
    wait_until(|| fs::metadata(at("r.dmdrec")).unwrap().len() > 3);
    fs::write(at("fork"), "").unwrap();
    wait_until(|| at("forked").exists());
    fs::write(at("end"), "").unwrap();
    let output = end(tracking);
    let child = Pid::from_raw(fs::read_to_string(at("forked")).unwrap().parse().unwrap()).unwrap();
    kill_process(child, Signal::KILL).expect("the child is alive");
    program.wait().unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = format!(
        "about-memory: process {} ended while DMD recorded it\n\
         about-memory: recorded r.dmdrec; next: about-memory leaks r.dmdrec\n",
        pid.as_raw_nonzero()
    );
    assert_eq!(stderr(&output), expected);
    let mut leaks = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    let leaks = leaks.args(["leaks", "r.dmdrec"]).current_dir(folder.path()).output().unwrap();
    assert!(String::from_utf8(leaks.stdout.clone()).unwrap().contains("grow"), "{leaks:?}");
}

#[test]
fn a_program_that_becomes_another_one_sends_its_dump() {
    let folder = tempfile::tempdir().unwrap();
    let (mut program, pid) = start(folder.path(), &["sleep"]);
    let tracking = begin(folder.path(), pid);
    fs::write(folder.path().join("end"), "").unwrap();
    let output = end(tracking);
    kill_process(pid, Signal::KILL).unwrap();
    program.wait().unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = format!(
        "about-memory: process {} replaced itself by another program while DMD recorded it\n\
         about-memory: wrote d.json.gz\n",
        pid.as_raw_nonzero()
    );
    assert_eq!(stderr(&output), expected);
    let mut dmd = Command::new(env!("CARGO_BIN_EXE_about-memory"));
    let dmd = dmd.args(["dmd", "d.json.gz"]).current_dir(folder.path()).output().unwrap();
    assert!(String::from_utf8(dmd.stdout.clone()).unwrap().contains("grow"), "{dmd:?}");
}

#[test]
fn a_program_that_is_killed_has_no_dump() {
    let folder = tempfile::tempdir().unwrap();
    let (mut program, pid) = start(folder.path(), &[]);
    let tracking = begin(folder.path(), pid);
    kill_process(pid, Signal::KILL).unwrap();
    let output = end(tracking);
    program.wait().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("ended while DMD recorded it and sent no dump: SIGKILL, a crash"), "{text}");
    assert!(!folder.path().join("d.json.gz").exists());
}
