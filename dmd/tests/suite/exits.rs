//! A reporter that ends the process: there is a dump all the same, and at once.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{command, count, preloaded, read_dump, run, victim};

const OPTIONS: &str = "--stacks=full --dump-at-exit --output=last.json";
const SAID: &str = "] a memory reporter ends the process: the reports are not complete\n";

fn check(command: &mut Command, folder: &Path, when: &str) {
    let output = run(command.arg(when).current_dir(folder));
    assert_eq!(output.status.code(), Some(7), "{when}: {output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.matches(SAID).count(), 1, "{when}: {text}");
    assert!(!text.contains("no dump"), "{when}: {text}");
    assert_eq!(text.matches("Dump 1 {").count(), 1, "{when}: {text}");
    assert_eq!(text.matches("Dump 2 {").count(), 0, "{when}: {text}");
    let dump = read_dump(folder.join("last.json"));
    std::fs::remove_file(folder.join("last.json")).unwrap();
    let reports = |block: &Value| block.get("reps").map_or(0, |reports| reports.as_array().unwrap().len());
    // Of the reporter before the one that exits, and of the one behind.
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
