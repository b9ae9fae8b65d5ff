//! The library about-memory without features, as another program embeds it. It prints the same texts as the program
//! `about-memory`. Other tests compare the texts of the program with Firefox's texts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../about-memory/tests/suite/golden.rs"]
mod golden;

use about_memory::{NormalizeRule, PathFilter};
use memory_reporter::{Kind, Report, ReportSet, Units};

fn set(paths: &[(&str, i64)]) -> ReportSet {
    let mut set = ReportSet::new();
    for &(path, amount) in paths {
        let (process, kind, units, description) = ("Main Process (pid 1)", Kind::Heap, Units::Bytes, "");
        set.push(Report { process, path, kind, units, amount, description });
    }
    set
}

#[test]
fn equal_amounts_are_in_the_order_of_names() {
    let names = ["b", "A", "a", "B", "_", "-", "1", "aa", "a b", "Ab", "[x]", "(x)"];
    let paths: Vec<(String, i64)> = names.iter().map(|name| (format!("explicit/{name}"), 1 << 20)).collect();
    let paths: Vec<(&str, i64)> = paths.iter().map(|(path, amount)| (&**path, *amount)).collect();
    let text = about_memory::text(&set(&paths)).to_string();
    let shown: Vec<_> =
        text.lines().filter_map(|line| line.split_once("%) ── ")).map(|(_, name)| name).collect();
    assert_eq!(shown, ["_", "-", "(x)", "[x]", "1", "a", "A", "a b", "aa", "Ab", "b", "B"]);
}

#[test]
fn filters_have_the_syntax_of_javascript() {
    for (pattern, yes, no) in [
        (r"^explicit\\x|b$", "explicit/b", "explicit/c"),
        (r"\bcache\b", "explicit/cache/x", "explicit/caches"),
        (r"a\s+b", "a \u{a0}b", "ab"),
        (r"[\s]x", "\u{2003}x", "x"),
        (r"\Sx", "ax", " x"),
        (r"[]", "", ""),
        (r"[^]{3}", "a/b", "ab"),
        (r"\x41\u0042", "AB", "ab"),
        (r"a{,2}", "a{,2}", "aa"),
    ] {
        let filter = PathFilter::regex(pattern).unwrap();
        assert!(filter.accepts(yes) != (pattern == "[]"), "{pattern} accepts {yes:?}");
        assert!(!filter.accepts(no), "{pattern} must not accept {no:?}");
    }
    assert!(PathFilter::regex("(").is_err());
}

#[test]
fn names_are_normalized_by_the_rules_of_firefox_and_of_the_caller() {
    let first = set(&[("explicit/window-objects/top(a, id=7)/x (pid 12)/session 1", 100)]);
    let second = set(&[("explicit/window-objects/top(a, id=8)/x (pid 13)/session 2", 130)]);
    let options = about_memory::DiffOptions::new()
        .normalize(NormalizeRule::parse("session [0-9]+=>session N").unwrap());
    let changes = about_memory::changes(&first, &second, &options).unwrap();
    let paths: Vec<_> = changes.changes().map(|change| change.path.clone().into_owned()).collect();
    assert_eq!(paths, ["explicit/window-objects/top(a, id=NNN)/x (pid NNN)/session N"]);
    assert!(NormalizeRule::parse("((a{100}){100}){100}=>").is_err(), "a pattern's memory is limited");
}

#[test]
fn coverage_is_asserted_without_symbols() {
    let dump = r##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "dark-matter"},
        "blockList": [{"req": 90, "slop": 0, "alloc": "A", "reps": ["A"]}, {"req": 10, "slop": 0, "alloc": "A"}],
        "traceTable": {"A": ["B"]}, "frameTable": {"B": "#00: ???[/bin/program +0x10]"}}"##;
    let path = std::env::temp_dir().join(format!("light-{}.json", std::process::id()));
    std::fs::write(&path, dump).unwrap();
    about_memory::assert_coverage!(path, >= 90 %);
    let failed = std::panic::catch_unwind(|| about_memory::assert_coverage!(path, >= 95 %)).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    let message = failed.downcast_ref::<String>().unwrap();
    assert!(message.starts_with("90.00% of the heap is reported, expected at least 95%"), "{message}");
}
