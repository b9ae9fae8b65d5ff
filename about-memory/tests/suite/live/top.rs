//! `top` on a terminal of 80 columns and 24 lines.

use std::io::Write as _;

use rustix::process::{Pid, Signal, kill_process};

use super::herd::Herd;
use super::watching::drawn;

#[test]
fn top_shows_processes_and_a_report_that_follows_them() {
    let mut herd = Herd::new();
    let pid = herd.start("one");
    let (mut child, mut terminal) = herd.on_terminal(&["top", "--interval", "0.05"], 24, 80);
    let first = drawn(&mut terminal, &pid.to_string());
    assert!(first.contains("\u{1b}[?1049h") && first.contains("RESIDENT"), "{first:?}");
    terminal.write_all(b"\r").unwrap();
    drawn(&mut terminal, "cache/data");
    terminal.write_all(b"v").unwrap();
    drawn(&mut terminal, "3,145,728");
    herd.nudge(pid);
    // Of 4,194,304, only the figures that change are drawn again.
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
    assert_eq!(said, "about-memory: top needs a terminal; for text, use list, show or watch\n");
}
