//! A reporter that ends the process: DMD still writes a dump, without delay.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::live::Waiting;
use crate::support::{command, count, preloaded, read_dump, run, victim};

const OPTIONS: &str = "--verbose --stacks=full --dump-at-exit --output=last.json";
const SAID: &str = "] a memory reporter ends the process: the reports are not complete\n";

fn check(command: &mut Command, folder: &Path, when: &str) {
    let output = run(command.arg(when).current_dir(folder));
    assert_eq!(output.status.code(), Some(7), "{when}: {output:?}");
    is_told(String::from_utf8(output.stderr).unwrap(), folder, when);
}

fn is_told(text: String, folder: &Path, when: &str) {
    assert_eq!(text.matches(SAID).count(), 1, "{when}: {text}");
    assert!(!text.contains("no dump"), "{when}: {text}");
    assert_eq!(text.matches("Dump 1 {").count(), 1, "{when}: {text}");
    assert_eq!(text.matches("Dump 2 {").count(), 0, "{when}: {text}");
    let dump = read_dump(folder.join("last.json"));
    std::fs::remove_file(folder.join("last.json")).unwrap();
    let reports = |block: &Value| block.get("reps").map_or(0, |reports| reports.as_array().unwrap().len());
    // The reporter before the reporter that exits has reported its blocks. The blocks of the reporter after it are
    // unreported.
    assert_eq!(count(&dump, |block| block["req"] == 10_000 && reports(block) == 1), 100, "{when}");
    assert_eq!(count(&dump, |block| block["req"] == 7_777 && reports(block) == 0), 100, "{when}");
    assert_eq!(count(&dump, |block| reports(block) == 2), 0, "{when}");
}

#[test]
fn a_reporter_that_ends_the_process_does_not_keep_the_dump() {
    let folder = tempfile::tempdir().unwrap();
    for when in ["dump", "report", "late"] {
        check(command(victim("exits")).env("DMD", OPTIONS), folder.path(), when);
        check(&mut preloaded(victim("exits"), OPTIONS), folder.path(), when);
    }
}

/// The main thread ends the process before any byte of the dump was sent: the process still sends the whole dump.
#[test]
fn a_dump_that_was_asked_for_is_sent_before_the_process_ends() {
    for mut command in [command(victim("exits")), preloaded(victim("exits"), "--stacks=full")] {
        command.arg("meanwhile").env("DMD", "--stacks=full");
        let mut waiting = Waiting::start(command);
        let dump = waiting.ask("dmd-dump");
        assert_eq!(waiting.child.wait().unwrap().code(), Some(7));
        let mut text = String::new();
        flate2::read::GzDecoder::new(&dump[..]).read_to_string(&mut text).unwrap();
        let dump: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(count(&dump, |block| block["req"] == 10_000), 100);
    }
}

/// The thread that writes the dump waits for the reporter, which runs on another thread.
#[test]
fn a_dump_that_was_asked_for_is_the_last_one_then() {
    let folder = tempfile::tempdir().unwrap();
    let options = format!(
        "--verbose --stacks=full --dump-at-exit --output={}",
        folder.path().join("last.json").display()
    );
    for mut command in [command(victim("exits")), preloaded(victim("exits"), &options)] {
        command.arg("asked").env("DMD", &options).stderr(Stdio::piped());
        let mut waiting = Waiting::start(command);
        assert_eq!(waiting.ask("dmd-dump"), b"", "nobody answers");
        assert_eq!(waiting.child.wait().unwrap().code(), Some(7));
        let mut text = String::new();
        waiting.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        is_told(text, folder.path(), "asked");
    }
}
