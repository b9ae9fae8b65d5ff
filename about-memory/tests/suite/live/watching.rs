//! `show --interval`, its old spelling `watch`, and the type `Watch`, with which both compare measurements.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;

use about_memory::live::{EntryChange, Watch};
use memory_reporter::{Kind, Report, ReportSet, Units};
use rustix::process::{Pid, Signal, kill_process};

use super::herd::Herd;

#[test]
fn what_changes_is_marked() {
    let mut herd = Herd::new();
    let pid = herd.start("one");
    let mut child = herd.running(&["watch", &pid.to_string(), "--interval", "0.05", "--count", "200"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("== 1, after "));
    assert_eq!(lines.next().unwrap(), format!("Main Process (pid {pid})"));
    let first: Vec<_> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let row = |name: &str| first.iter().find(|line| line.ends_with(name)).unwrap();
    assert_eq!(row("    cache/data").trim_start(), "3.00 MB                        cache/data");
    herd.nudge(pid);
    let grown = lines.by_ref().find(|line| line.ends_with("    cache/data") && line.contains(" + "));
    assert_eq!(grown.unwrap().trim_start(), "4.00 MB         +1.00 MB +     cache/data");
    let gone = lines.by_ref().find(|line| line.ends_with("names/earlier"));
    assert_eq!(gone.unwrap().trim_start(), "0               -6 x   names/earlier");
    herd.kill(pid);
    let rest = lines.last();
    assert!(rest.is_some());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(told.starts_with(&format!("about-memory: process {pid}: ")), "{told}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

/// Returns everything that a program draws, with escape sequences, until it has drawn `wanted`.
pub(super) fn drawn(terminal: &mut File, wanted: &str) -> String {
    let mut drawn = Vec::new();
    let mut bytes = [0; 4096];
    while !String::from_utf8_lossy(&drawn).contains(wanted) {
        let read = terminal.read(&mut bytes).unwrap_or(0);
        assert!(read > 0, "{wanted:?} is not in {:?}", String::from_utf8_lossy(&drawn));
        drawn.extend(&bytes[..read]);
    }
    String::from_utf8(drawn).unwrap()
}

#[test]
fn a_terminal_gets_the_same_lines_until_a_signal_ends_it() {
    let mut herd = Herd::new();
    let pid = herd.start("one");
    for arguments in [&["watch", &pid.to_string()][..], &["show", &pid.to_string(), "--interval", "0.05"]] {
        let (mut child, mut terminal) = herd.on_terminal(arguments, 8, 70);
        let text = drawn(&mut terminal, "cache/data");
        assert!(text.starts_with("== 1, after ") && !text.contains("\u{1b}["), "{text:?}");
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    }
}

#[test]
fn a_count_ends_it() {
    let mut herd = Herd::new();
    let pids = [herd.start("one").to_string(), herd.start("two").to_string()];
    let text = herd.shown(&["show", &pids[0], &pids[1], "-i", "0.01", "-c", "3"]);
    assert_eq!(text.lines().filter(|line| line.starts_with("== ")).count(), 3, "{text}");
    assert_eq!(text.lines().filter(|line| **line == format!("two (pid {})", pids[1])).count(), 3);
}

#[test]
fn who_is_missing_is_told_each_time() {
    let mut herd = Herd::new();
    let pid = herd.start("one").to_string();
    let text = herd.shown(&["watch", &pid, "4200001", "-i", "0.01", "-c", "2"]);
    let warning = "\nWARNING: process (pid 4200001): missing: does not listen";
    assert_eq!(text.matches(warning).count(), 2, "{text}");
}

fn set(reports: &[(&str, i64)]) -> ReportSet {
    let mut set = ReportSet::new();
    for (path, amount) in reports {
        let (process, kind, units, description) = ("p", Kind::NonHeap, Units::Bytes, "");
        set.push(Report { process, path, kind, units, amount: *amount, description });
    }
    set
}

#[test]
fn rows_are_the_open_tree_with_differences() {
    const MIB: i64 = 1 << 20;
    let mut watch = Watch::new();
    let rows = |watch: &mut Watch, reports: &[(&str, i64)]| -> Vec<String> {
        watch.rows(&about_memory::text(&set(reports))).iter().map(ToString::to_string).collect()
    };
    let first =
        [("explicit/a", 100 * MIB), ("explicit/b/c", 50 * MIB), ("explicit/b/d", 50 * MIB), ("x\u{1b}", MIB)];
    assert_eq!(
        rows(&mut watch, &first),
        [
            "p",
            "       200.00 MB                      explicit",
            "       100.00 MB                        a",
            "       100.00 MB                        b",
            "        50.00 MB                          c",
            "        50.00 MB                          d",
            "         1.00 MB                      x\\u{1b}",
        ]
    );
    assert!(watch.rows(&about_memory::text(&set(&first))).iter().all(|row| row.change == EntryChange::Same));
    let second = [
        ("explicit/a", 101 * MIB),
        ("explicit/b/c", 50 * MIB - 100),
        ("explicit/b/e", 50 * MIB),
        ("x\u{1b}", MIB),
    ];
    assert_eq!(
        rows(&mut watch, &second),
        [
            "p",
            "       201.00 MB         +1.00 MB +   explicit",
            "       101.00 MB         +1.00 MB +     a",
            "       100.00 MB           -100 B -     b",
            "        50.00 MB        +50.00 MB *       e",
            "        50.00 MB           -100 B -       c",
            "         1.00 MB                      x\\u{1b}",
            "         0.00 MB        -50.00 MB x   explicit/b/d",
        ]
    );
}

#[test]
fn an_entry_that_becomes_large_is_not_new() {
    let mut watch = Watch::new();
    watch.rows(&about_memory::text(&set(&[("t/a", 1_000_000), ("t/b", 1), ("t/c", 1)])));
    let rows = watch.rows(&about_memory::text(&set(&[("t/a", 1_000_000), ("t/b", 900_000), ("t/c", 1)])));
    let row = rows.iter().find(|row| row.name.ends_with('b')).unwrap();
    assert_eq!((row.change, &*row.difference), (EntryChange::Grown, "+0.86 MB"));
}

#[test]
fn only_what_is_asked_for_is_watched() {
    let mut herd = Herd::new();
    let pid = herd.start("one").to_string();
    let options = ["--filter", "explicit", "--depth", "0", "--units", "mib", "-i", "0.01", "-c", "2"];
    let text = herd.shown(&[&["watch", &pid][..], &options].concat());
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with(' ')).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows.iter().all(|row| row.contains(" MiB ") && row.ends_with("   explicit")), "{text}");
}

#[test]
fn the_own_amount_of_an_inner_entry_is_not_that_of_all_of_it() {
    let mut watch = Watch::new();
    let same = set(&[("t/a", 1 << 20), ("t/a/b", 2 << 20)]);
    watch.rows(&about_memory::text(&same));
    let rows = watch.rows(&about_memory::text(&same));
    assert!(rows.iter().all(|row| row.change == EntryChange::Same), "{rows:?}");
}
