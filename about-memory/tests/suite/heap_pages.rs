//! Pages of recordings, and of the changes between two heaps. `ui/test/heap.test.mjs` opens the recordings of
//! `golden/heap` in a browser.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::html::{about_memory, header};
use crate::recordings::script::Script;

/// A server that runs for one second: it starts, answers requests, fills a cache, and runs one large task.
fn server(start: u64, cached: u64, task: u64) -> Script {
    let mut script = Script::new();
    let starting = script.stack(&[0x100, 0x110]);
    let request = script.stack(&[0x100, 0x200, 0x210]);
    let cache = script.stack(&[0x100, 0x200, 0x220]);
    let large = script.stack(&[0x100, task]);
    script.begin(1000, 1, 0x1000, start, starting);
    for n in 1..9 {
        script.begin(100_000 * n, 2, 0x10_0000 * n, 1_000_000, request);
        script.end(100_000 * n + 50_000, 2, 0x10_0000 * n);
    }
    for n in 0..10 {
        script.begin(100_000 * n + 52_000, 3, 0x2000_0000 + 0x10_0000 * n, cached, cache);
    }
    script.begin(600_000, 1, 0x4000_0000, 8_000_000, large);
    script.end(650_000, 1, 0x4000_0000);
    script.begin(1_000_000, 1, 0x5000_0000, 1, starting);
    script
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/heap").join(name)
}

/// Returns the path of a recording. The tests in the browser read this file, too.
fn recording(name: &str, script: &Script) -> String {
    let path = golden(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, script.bytes()).unwrap();
    }
    let is_same = fs::read(&path).is_ok_and(|there| there == script.bytes());
    assert!(is_same, "{name} is out of date; UPDATE_GOLDEN=1 rewrites it");
    path.to_str().unwrap().to_owned()
}

fn before() -> String {
    recording("before.dmdrec", &server(4_000_000, 500_000, 0x300))
}

fn after() -> String {
    recording("after.dmdrec", &server(3_000_000, 600_000, 0x310))
}

fn page(arguments: &[&str]) -> String {
    let output = about_memory(&[&["html", "--no-fix-stacks", "-o", "-"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_recording_is_a_page_with_its_time_line() {
    let page = page(&[&before()]);
    assert!(page.contains("before.dmdrec)</title>"));
    // The page without its data has a limited size.
    assert!(page.len() < 114_000, "{} bytes", page.len());
    let heap = &header(&page)["heap"];
    let time = &heap["timeline"];
    // There are 200 slices. The peak is at the end of one of them.
    assert_eq!((time["bounds"].as_u64(), time["peak"].as_u64()), (Some(201), Some(120)));
    assert_eq!((&time["starts_at_peak"], &time["is_complete"]), (&Value::Bool(true), &Value::Bool(true)));
    assert_eq!((heap["rows"].as_u64(), heap["merged"].as_u64()), (Some(4), Some(0)));
    assert_eq!(heap["change"], Value::Null);
}

#[test]
fn a_chosen_time_is_a_flame_graph() {
    for chosen in [&["--at", "0.5s"][..], &["--between", "0.1s", "0.5s"]] {
        let header = header(&page(&[&[before().as_str()], chosen].concat()));
        assert_eq!(header["heap"], Value::Null);
        assert!(header["flame"]["frames"].as_u64().unwrap() > 3);
    }
}

#[test]
fn two_recordings_are_a_page_of_what_changed() {
    let page = page(&[&before(), &after()]);
    assert!(page.contains("before.dmdrec and "), "the title contains both names");
    let heap = &header(&page)["heap"];
    assert!(heap["change"]["before"].as_str().unwrap().ends_with("before.dmdrec"));
    assert!(heap["change"]["after"].as_str().unwrap().ends_with("after.dmdrec"));
    assert_eq!((heap["rows"].as_u64(), &heap["timeline"]), (Some(2), &Value::Null));
    let at_peak = header(&self::page(&[&before(), &after(), "--at", "peak"]));
    assert_eq!(at_peak["heap"]["rows"].as_u64(), Some(5), "both tasks are alive then");
}

#[test]
fn two_dumps_are_a_page_of_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let dump = |name: &str, blocks: &str| {
        let path = folder.path().join(name);
        let tables = r##""traceTable": {"A": ["F"], "B": ["G"]}, "frameTable": {"F": "#00: f (a.rs:1)", "G": "#00: g (a.rs:2)"}"##;
        let text = format!(
            r#"{{"version": 5, "invocation": {{"dmdEnvVar": "1", "mode": "live"}}, "blockList": [{blocks}], {tables}}}"#
        );
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let first = dump("first.json", r#"{"req": 100, "alloc": "A"}"#);
    let second = dump("second.json", r#"{"req": 100, "alloc": "A"}, {"req": 50, "num": 2, "alloc": "B"}"#);
    assert_eq!(header(&page(&[&first, &second]))["heap"]["rows"].as_u64(), Some(2));
    assert_eq!(header(&page(&[&first, &after()]))["heap"]["rows"].as_u64(), Some(3));
    for (arguments, status, message) in [
        (&[first.as_str(), second.as_str(), "--normalize", "a=>b"][..], 2, "--normalize is for reports"),
        (&[first.as_str(), "-"], 2, "standard input is not allowed"),
        (
            &[first.as_str(), second.as_str(), "--at", "1s"],
            1,
            "first.json: the dump does not have the blocks of that time",
        ),
    ] {
        let output = about_memory(&[&["html", "-o", "-"], arguments].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.contains(message) && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn reports_have_no_time_to_choose() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    fs::write(&report, r#"{"version": 1, "hasMozMallocUsableSize": true, "reports": []}"#).unwrap();
    let report = report.to_str().unwrap();
    let output = about_memory(&["html", "-o", "-", report, report, "--at", "peak"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr).unwrap().contains("--at and --between are for dumps and recordings")
    );
}

#[test]
fn a_cut_recording_is_a_page_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.dmdrec");
    let bytes = fs::read(before()).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 40]).unwrap();
    let page = page(&[path.to_str().unwrap()]);
    assert_eq!(header(&page)["heap"]["timeline"]["is_complete"], false);
}
