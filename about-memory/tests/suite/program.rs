//! The program: exit status, messages, pipes.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn about_memory(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_about-memory")).args(arguments).output().unwrap()
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/firefox/units.json")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn shows_a_file() {
    let output = about_memory(&["show", sample().to_str().unwrap()]);
    assert!(output.status.success());
    let expected = fs::read(sample().with_file_name("units.expected.txt")).unwrap();
    assert_eq!(output.stdout, expected);
    assert_eq!(stderr(&output), "");
}

#[test]
fn shows_standard_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["show", "-", "--verbose", "--filter", "^explicit", "--regex"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(sample()).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\n94,503,257 B (100.0%) -- explicit\n"), "{text}");
    assert!(output.status.success());
}

#[test]
fn a_bad_file_is_one_line_and_status_1() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("a\n\u{1b}[31m");
    let output = about_memory(&["show", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.starts_with("about-memory: "), "{message}");
    assert!(message.ends_with("a\\u{a}\\u{1b}[31m: not found\n"), "{message}");

    let output = about_memory(&["show", folder.path().to_str().unwrap()]);
    assert!(stderr(&output).ends_with(": is a directory\n"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_long_message_is_cut_in_the_middle() {
    let name = format!("{}/x.json", "é".repeat(400));
    let message = stderr(&about_memory(&["show", &name]));
    assert!(message.trim_end().len() <= 300, "{}", message.len());
    assert!(message.contains(" ... "), "{message}");
    assert!(message.starts_with("about-memory: é"), "{message}");
}

#[test]
fn wrong_usage_is_status_2() {
    let sample = sample();
    let sample = sample.to_str().unwrap();
    for arguments in [
        &["show", sample, "--filter", "(", "--regex"][..],
        &["show"],
        &["show", sample, "--regex"],
        &["no-such-command"],
        &[],
    ] {
        let output = about_memory(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
    }
    let output = about_memory(&["show", sample, "--filter", "(", "--regex"]);
    assert_eq!(stderr(&output), "about-memory: not a regular expression: (\n");
}

#[test]
fn help_shows_examples() {
    for arguments in [&["--help"][..], &["show", "--help"]] {
        let output = about_memory(arguments);
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains("Examples:\n  about-memory show "));
    }
}

#[test]
fn bad_reports_are_told_on_stderr_too() {
    let bad = sample().with_file_name("../ours/bad-reports.json");
    let output = about_memory(&["show", bad.to_str().unwrap()]);
    assert!(output.status.success());
    assert!(stderr(&output).ends_with(" warnings, shown at the top of the text\n"), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let sample = sample().with_file_name("sample.json.gz");
    let mut child = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["show", "--verbose", sample.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(stderr(&output), "");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let output = about_memory(&["show", fifo.to_str().unwrap()]);
    assert!(stderr(&output).ends_with(": is not a regular file\n"));
}
