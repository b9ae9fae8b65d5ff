//! Firefox's signals.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use memory_reporter::file;

use super::{Victim, amount, until};

/// The complete reports in the program's folder.
fn reports(victim: &Victim) -> Vec<PathBuf> {
    let entries = fs::read_dir(victim.runtime.path()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("memory-report-"))
        .collect();
    paths.sort();
    paths
}

fn next_report(victim: &Victim, count: usize) -> Vec<PathBuf> {
    until("a report", || Some(reports(victim)).filter(|reports| reports.len() == count))
}

#[test]
fn a_signal_saves_a_report() {
    let victim = Victim::start("signals");
    victim.signal(libc::SIGRTMIN());
    let [path] = &*next_report(&victim, 1) else { panic!() };
    let name = path.file_name().unwrap().to_str().unwrap();
    let middle = name.strip_prefix("memory-report-").unwrap().strip_suffix(".json.gz").unwrap();
    let (seconds, pid) = middle.split_once('-').unwrap();
    assert!(seconds.parse::<u64>().unwrap() > 1_600_000_000);
    assert_eq!(pid, victim.pid().to_string());
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    let set = file::read(path).unwrap();
    assert_eq!(amount(&set, "names/secret"), Some(1));
    assert_eq!(amount(&set, "minimized"), Some(0));
}

#[test]
fn the_next_signal_minimizes_first() {
    let victim = Victim::start("signals");
    victim.signal(libc::SIGRTMIN() + 1);
    let [path] = &*next_report(&victim, 1) else { panic!() };
    assert_eq!(amount(&file::read(path).unwrap(), "minimized"), Some(3));
}

#[test]
fn no_report_is_overwritten() {
    let victim = Victim::start("signals");
    for count in 1..=4 {
        victim.signal(libc::SIGRTMIN());
        next_report(&victim, count);
    }
    let incomplete = fs::read_dir(victim.runtime.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("incomplete-"));
    assert_eq!(incomplete.count(), 0);
    let (status, stderr) = victim.end();
    assert!(status.success());
    assert_eq!(stderr, "");
}

#[test]
fn the_variable_names_the_folder() {
    let victim = Victim::start_with("rest", |command, runtime| {
        let folder = runtime.join("reports");
        fs::create_dir(&folder).unwrap();
        command.env("ABOUT_MEMORY", format!("listen,signals={}", folder.display()));
    });
    victim.signal(libc::SIGRTMIN());
    until("a report", || {
        let mut entries = fs::read_dir(victim.runtime.path().join("reports")).unwrap();
        entries.any(|e| e.unwrap().file_name().to_str().unwrap().starts_with("memory-report-")).then_some(())
    });
    assert_eq!(amount(&victim.report(""), "names/secret"), Some(1));
}

#[test]
fn the_folder_for_temporary_files_will_do() {
    let victim = Victim::start_with("rest", |command, _| {
        command.env("ABOUT_MEMORY", "signals");
    });
    victim.signal(libc::SIGRTMIN());
    next_report(&victim, 1);
}

#[test]
fn a_folder_that_has_gone_is_one_line() {
    let victim = Victim::start_with("rest", |command, runtime| {
        let folder = runtime.join("reports");
        fs::create_dir(&folder).unwrap();
        command.env("ABOUT_MEMORY", format!("signals={}", folder.display()));
    });
    fs::remove_dir(victim.runtime.path().join("reports")).unwrap();
    victim.signal(libc::SIGRTMIN());
    // A thread tries to save the report, and then prints the line.
    let mut victim = victim;
    let stderr = victim.child.stderr.take().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut line).unwrap();
    assert!(line.starts_with("memory-reporter: cannot save a report to "), "{line}");
}

#[test]
fn a_handler_of_the_program_s_own_stays() {
    let (_victim, lines) = Victim::told("taken", |_, _| {});
    assert!(lines[0].starts_with("signal ") && lines[0].ends_with(" has a handler already"), "{lines:?}");
    assert!(lines[1].ends_with("/dev/null: not a folder"), "{lines:?}");
}
