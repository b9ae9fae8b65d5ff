//! The contents of a report or a dump while another thread runs the reporters, too.

use std::path::PathBuf;

use memory_reporter::{ReportSet, file};
use serde_json::Value;

use crate::support::{command, count, read_dump, succeed, victim, warnings};

/// The files of two runs. The second run starts in the middle of the first run.
fn run(first: &str, second: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.json", "b.json"].map(|name| folder.path().join(name));
    succeed(
        command(victim("overlapping"))
            .args([first, second])
            .args([&a, &b])
            .env("DMD", "--stacks=full --quiet"),
    );
    (folder, a, b)
}

fn sum(set: &ReportSet, root: &str) -> i64 {
    set.iter().filter(|report| report.path.starts_with(root)).map(|report| report.amount).sum()
}

fn is_told(set: &ReportSet) {
    assert!(set.iter().any(|report| report.path.starts_with("explicit/heap-unclassified/")));
    assert_eq!(sum(set, "twice-reported/"), 0, "no block is reported twice");
    let dark: i64 = sum(set, "explicit/heap-unclassified/");
    assert!((0..500_000).contains(&dark), "reported memory must not be dark: {dark}");
    assert!(warnings(set).is_empty(), "{:?}", set.warnings());
}

fn is_not_told(set: &ReportSet) {
    assert_eq!(sum(set, "twice-reported/") + sum(set, "explicit/heap-unclassified/"), 0);
    assert!(sum(set, "explicit/pages") > 1_000_000 && sum(set, "explicit/words") > 777_000);
    let [warning] = warnings(set)[..] else { panic!("one warning: {:?}", set.warnings()) };
    let said =
        "heap-unclassified: unreported memory is not attributed: another collection ran at the same time";
    assert!(warning.to_string().contains(said), "{warning}");
}

fn is_sound(dump: &Value) {
    let reports = |block: &Value| block.get("reps").map_or(0, |reports| reports.as_array().unwrap().len());
    for size in [10_000, 7_777] {
        assert_eq!(count(dump, |block| block["req"] == size && reports(block) == 1), 100);
    }
    assert_eq!(count(dump, |block| reports(block) == 2), 0, "no block is reported twice");
    for name in ["explicit/pages", "explicit/words"] {
        let paths = dump["reportPaths"].as_array().unwrap();
        let path = paths.iter().find(|path| path["path"] == name).unwrap();
        assert_eq!(path["claimed"], path["marked"], "{path}");
    }
}

#[test]
fn a_report_does_not_count_what_another_report_reports() {
    let (_folder, first, second) = run("report", "report");
    is_told(&file::read(first).unwrap());
    is_not_told(&file::read(second).unwrap());
}

#[test]
fn a_report_that_lost_its_marks_to_a_dump_says_so() {
    let (_folder, report, dump) = run("report", "dump");
    is_not_told(&file::read(report).unwrap());
    is_sound(&read_dump(dump));
}

#[test]
fn a_report_whose_marks_were_taken_away_says_so() {
    let (_folder, report, _) = run("report", "clear");
    is_not_told(&file::read(report).unwrap());
}

#[test]
fn a_child_tells_all_whatever_ran_where_it_was_forked() {
    for first in ["report", "dump"] {
        let (_folder, _, report) = run(first, "forked");
        let set = file::read(report).unwrap();
        assert!(set.iter().any(|report| report.path.starts_with("explicit/heap-unclassified/")), "{first}");
        assert_eq!(sum(&set, "twice-reported/"), 0, "{first}: no block is reported twice");
        assert!((0..500_000).contains(&sum(&set, "explicit/heap-unclassified/")), "{first}");
    }
}

#[test]
fn of_two_dumps_at_once_one_is_refused() {
    let (_folder, dump, error) = run("dump", "refused");
    is_sound(&read_dump(dump));
    let error = std::fs::read_to_string(error).unwrap();
    assert!(error.contains(&std::io::Error::from_raw_os_error(libc::EBUSY).to_string()), "{error}");
}

/// DMD forgets the paths of earlier runs.
#[test]
fn a_dump_has_its_own_paths_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.json");
    succeed(command(victim("paths")).arg(&path).env("DMD", "--stacks=full --quiet"));
    let dump = read_dump(&path);
    let paths = dump["reportPaths"].as_array().unwrap().iter().map(|path| path["path"].as_str().unwrap());
    let numbered: Vec<&str> = paths.filter(|path| path.starts_with("explicit/run-")).collect();
    assert_eq!(numbered, ["explicit/run-101"]);
    let reported = |block: &Value| block["reps"].as_array().map_or(0, Vec::len) == 1;
    assert_eq!(count(&dump, |block| block["req"] == 10_000 && reported(block)), 100);
}

#[test]
fn the_dump_at_the_end_waits_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let [first, last] = ["first.json", "last.json"].map(|name| folder.path().join(name));
    let options = format!("--stacks=full --quiet --dump-at-exit --output={}", last.display());
    let output = succeed(command(victim("ending")).arg(&first).env("DMD", options));
    assert!(output.stderr.is_empty(), "{output:?}");
    for path in [first, last] {
        let dump = read_dump(&path);
        let reported = |block: &Value| block["reps"].as_array().map_or(0, Vec::len) == 1;
        assert_eq!(
            count(&dump, |block| block["req"] == 10_000 && reported(block)),
            100,
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_dump_does_not_count_what_a_report_reports() {
    let (_folder, dump, report) = run("dump", "report");
    is_sound(&read_dump(dump));
    is_not_told(&file::read(report).unwrap());
}
