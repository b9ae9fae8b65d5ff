//! `top` on a terminal of 80 columns and 24 lines.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Action, tcflow};

use super::herd::{Herd, drain, names, until};
use super::watching::drawn;

fn kill(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Imitates a process that sends half a file and then hangs.
fn hangs_in_its_answer(mut stream: UnixStream) {
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    stream.write_all(b"\x1f\x8b\x08\0\0\0\0\0\0\xff").unwrap();
    thread::spawn(|| drain(stream));
}

/// The program gets no SIGHUP, because the terminal is not the terminal of the program's session.
#[test]
fn top_ends_with_its_terminal() {
    let mut herd = Herd::new();
    let pid = herd.start("name heap").to_string();
    let (mut child, mut terminal) = herd.on_whole_terminal(&["top", "--interval", "0.05"], 24, 80);
    drawn(&mut terminal, &pid);
    terminal.write_all(b"S").unwrap();
    drawn(&mut terminal, "inverted");
    // The snapshot's screen may be drawn before its folder exists.
    until(|| (herd.temporary().len() == 1).then_some(()));
    drop(terminal);
    assert!(until(|| child.try_wait().unwrap()).success());
    assert_eq!(herd.temporary(), Vec::<String>::new());
}

/// The user has stopped the terminal's output with Ctrl-S, so drawing waits.
#[test]
fn a_second_signal_ends_top_whatever_it_waits_for() {
    let mut herd = Herd::new();
    let pid = herd.start("name heap").to_string();
    let (mut child, mut terminal) = herd.on_terminal(&["top", "--interval", "0.05"], 24, 80);
    drawn(&mut terminal, &pid);
    terminal.write_all(b"S").unwrap();
    drawn(&mut terminal, "inverted");
    let own = herd.terminal_of(&child);
    tcflow(&own, Action::OOff).unwrap();
    // Selects another screen, which cannot be drawn.
    terminal.write_all(b"1").unwrap();
    kill(&child, Signal::TERM);
    kill(&child, Signal::INT);
    let status = until(|| child.try_wait().unwrap());
    // The first signal may have arrived while the program was not drawing.
    assert!(status.success() || status.signal().is_some(), "{status}");
    assert_eq!(herd.temporary(), Vec::<String>::new());
}

/// A signal ends a command that waits for a process, and no partial file stays.
#[test]
fn a_signal_ends_commands_that_wait_for_a_process() {
    let herd = Herd::new();
    herd.pretend(4_200_001, hangs_in_its_answer);
    let begun: [(&[&str], &str); 4] = [
        (&["dump", "4200001", "-o", "x.json.gz"], "incomplete-"),
        (&["snapshot", "save", "4200001", "x.fxsnapshot"], "incomplete-"),
        (&["export", "4200001", "--format", "folded", "-o", "x.txt"], ""),
        (&["track", "4200001", "--timeout", "300"], ""),
    ];
    for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
        for (arguments, file) in begun {
            let mut child = herd.running(arguments);
            let is_there = |name: &String| name.starts_with(file) && name != "about-memory";
            match arguments[0] {
                "dump" | "snapshot" => until(|| names(herd.path()).iter().any(is_there).then_some(())),
                "export" => until(|| (!herd.temporary().is_empty()).then_some(())),
                _ => until(|| catches(&child, signal).then_some(())),
            }
            kill(&child, signal);
            if arguments[0] == "track" {
                // The first signal asks the program to end, but it waits for an answer.
                thread::sleep(std::time::Duration::from_millis(100));
                kill(&child, signal);
            }
            let status = until(|| child.try_wait().unwrap());
            assert_eq!(status.signal(), Some(signal.as_raw()), "{arguments:?}");
            assert_eq!(names(herd.path()), ["about-memory"], "{arguments:?}");
            assert_eq!(herd.temporary(), Vec::<String>::new(), "{arguments:?}");
        }
    }
}

/// Whether a process has a handler for a signal.
fn catches(child: &Child, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or_default();
    caught >> (signal.as_raw() - 1) & 1 == 1
}

/// Every process answers `minimize`, so processes do not list it among the requests that they answer.
#[test]
fn m_minimizes_the_memory_of_a_process() {
    let mut herd = Herd::new();
    let pid = herd.start("one");
    let (mut child, mut terminal) = herd.on_terminal(&["top", "--interval", "0.05"], 24, 80);
    drawn(&mut terminal, &pid.to_string());
    terminal.write_all(b"m").unwrap();
    drawn(&mut terminal, "minimized");
    terminal.write_all(b"q").unwrap();
    drawn(&mut terminal, "\u{1b}[?1049l");
    assert!(child.wait().unwrap().success());
    assert!(herd.shown(&["show", &pid.to_string()]).contains("1.00 MB"));
}

#[test]
fn top_shows_processes_and_a_report_that_follows_them() {
    let mut herd = Herd::new();
    let pid = herd.start("one");
    let (mut child, mut terminal) = herd.on_terminal(&["top", "--interval", "0.05"], 24, 80);
    let first = drawn(&mut terminal, &pid.to_string());
    assert!(first.contains("\u{1b}[?1049h") && first.contains("RESIDENT"), "{first:?}");
    terminal.write_all(b"\r").unwrap();
    let report = drawn(&mut terminal, "cache/data");
    assert!(report.contains(&format!("one (pid {pid})")), "{report:?}");
    terminal.write_all(b"v").unwrap();
    drawn(&mut terminal, "3,145,728");
    herd.nudge(pid);
    // Only the changed digits of 4,194,304 are drawn again.
    drawn(&mut terminal, "304");
    terminal.write_all(b"4").unwrap();
    drawn(&mut terminal, "stacks:");
    terminal.write_all(b"q").unwrap();
    drawn(&mut terminal, "\u{1b}[?1049l");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_signal_ends_top_and_gives_the_screen_back() {
    let herd = Herd::new();
    for signal in [Signal::TERM, Signal::INT] {
        let (mut child, mut terminal) = herd.on_terminal(&["top"], 24, 80);
        drawn(&mut terminal, "ABOUT_MEMORY=listen");
        kill_process(Pid::from_child(&child), signal).unwrap();
        drawn(&mut terminal, "\u{1b}[?1049l");
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn top_without_a_terminal_is_wrong_usage() {
    let herd = Herd::new();
    let output = herd.running(&["top"]).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "about-memory: top needs a terminal; for text, use list, show or show --interval\n");
}
