//! `about-memory dmd`, `html`, `diff`, `history` and `leaks` of recordings.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

#[allow(dead_code, reason = "the tests of dmd-analyze use the rest")]
#[path = "../../../dmd/analyze/tests/analyze/recording/script.rs"]
pub(crate) mod script;

use script::Script;

/// A server with a block that stays, a block that grows, and a temporary block.
fn server(kept: u64) -> Script {
    let mut script = Script::new();
    let (start, request) = (script.stack(&[0x100, 0x110]), script.stack(&[0x100, 0x120]));
    script.begin(1000, 1, 0x1000, kept, start);
    script.begin(2000, 2, 0x2000, 1 << 20, request);
    script.end(500_000, 2, 0x2000);
    for n in 0..10 {
        script.begin(600_000 + 40_000 * n, 1, 0x10_000 + 0x100 * n, 100, request);
    }
    script
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, script: &Script) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, script.bytes()).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

pub(crate) fn about_memory(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_about-memory")).args(arguments).output().unwrap()
}

pub(crate) fn stdout(arguments: &[&str]) -> String {
    let output = about_memory(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn fails(arguments: &[&str], status: i32) -> String {
    let output = about_memory(arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn views_of_dumps_show_any_time_of_a_recording() {
    let files = Files::new();
    let file = files.write("a.dmdrec", &server(5000));
    let usual = stdout(&["dmd", &file, "--no-fix-stacks"]);
    assert!(usual.contains("At the peak (--at end shows the end):"), "{usual}");
    assert!(usual.contains("Live heap: 1.00 MiB in 2 blocks"), "{usual}");
    let at = stdout(&["dmd", &file, "--no-fix-stacks", "--at", "0.55s"]);
    assert!(at.contains("0.55 s after the start:") && at.contains("4.88 KiB in 1 block"), "{at}");
    let between = stdout(&["dmd", &file, "--no-fix-stacks", "--between", "100ms", "0.65s"]);
    assert!(between.contains("Allocated between 0.10 s and 0.65 s, and still alive then:"), "{between}");
    assert!(between.contains("Live heap: 200 B in 2 blocks"), "{between}");
    let tree = stdout(&["dmd", &file, "--no-fix-stacks", "--at", "end", "--by", "site"]);
    assert!(tree.contains("4.88 KiB") && tree.contains("1000 B"), "{tree}");
    let folded = stdout(&["dmd", &file, "--no-fix-stacks", "--at", "end", "--folded"]);
    assert!(folded.contains(" 5000\n"), "{folded}");
    let suggestions = stdout(&["dmd", &file, "--no-fix-stacks", "--suggest"]);
    assert!(suggestions.contains(" bytes in 2 blocks at the peak (--at end shows the end)"), "{suggestions}");
    let suggestions = stdout(&["dmd", &file, "--no-fix-stacks", "--suggest", "--between", "100ms", "0.65s"]);
    assert!(
        suggestions.starts_with("The program allocated 200 bytes in 2 blocks between 0.10 and"),
        "{suggestions}"
    );
    let page = files.path("page.html");
    stdout(&["html", &file, "--no-fix-stacks", "--at", "peak", "-o", page.to_str().unwrap()]);
    assert!(fs::metadata(page).unwrap().len() > 10_000);
    for (arguments, words) in [
        (["dmd", &file, "--at", "500s"], "the recording ends at"),
        (["dmd", &file, "--at", "12"], "is not peak, end, or a time such as 12.5s"),
        (["coverage", &file, "--by", "type"], "a recording does not have the reports of memory reporters"),
    ] {
        let message = about_memory(&arguments);
        let message = String::from_utf8(message.stderr).unwrap();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_dump_has_no_other_times() {
    let dump = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/dmd");
    let dump =
        fs::read_dir(dump).unwrap().filter_map(|entry| entry.unwrap().path().to_str().map(str::to_owned));
    let dump = dump.filter(|path| path.ends_with(".json")).min().unwrap();
    let message = fails(&["dmd", &dump, "--at", "2s"], 1);
    assert!(message.contains("only a recording has the blocks of every time"), "{message}");
    let message = fails(&["history", &dump], 1);
    assert!(message.contains("a dump has no history; record a program with"), "{message}");
}

#[test]
fn a_history_is_text_and_json() {
    let files = Files::new();
    let file = files.write("a.dmdrec", &server(5000));
    let text = stdout(&["history", &file, "--no-fix-stacks"]);
    assert!(text.contains("Live bytes over the time") && text.contains("by thread"), "{text}");
    let json: Value =
        serde_json::from_str(&stdout(&["history", &file, "--json", "--no-fix-stacks"])).unwrap();
    assert_eq!(json["allocations"], 12);
    assert_eq!(json["threads"].as_array().unwrap().len(), 2);
    let limited: Value =
        serde_json::from_str(&stdout(&["history", &file, "--json", "--limit", "1", "--no-fix-stacks"]))
            .unwrap();
    assert_eq!(limited["threads"].as_array().unwrap().len(), 1);
}

#[test]
fn leaks_beyond_a_limit_are_a_failure() {
    let files = Files::new();
    let file = files.write("a.dmdrec", &server(5000));
    let text = stdout(&["leaks", &file, "--no-fix-stacks", "--fail-above", "11", "--fail-if", "6000B"]);
    assert!(text.contains("Leaked: 5.86 KiB in 11 blocks."), "{text}");
    assert!(text.contains("again and again, and never freed: 1000 B in 10 blocks"), "{text}");
    let message = fails(&["leaks", &file, "--no-fix-stacks", "--fail-above", "10"], 3);
    assert!(message.ends_with("a.dmdrec: 11 blocks with 5.86 KiB leaked, more than 10\n"), "{message}");
    let message = fails(&["leaks", &file, "--no-fix-stacks", "--fail-above", "5KiB"], 3);
    assert!(message.ends_with("a.dmdrec: 5.86 KiB in 11 blocks leaked, more than 5.00 KiB\n"), "{message}");
    stdout(&["leaks", &file, "--no-fix-stacks", "--fail-above", "0", "--ignore", "server"]);
    fails(&["leaks", &file, "--fail-above", "10 apples"], 2);
    let json: Value = serde_json::from_str(&stdout(&["leaks", &file, "--json", "--no-fix-stacks"])).unwrap();
    assert_eq!(json["bytes"], 6000);
}

#[test]
fn recordings_and_dumps_have_a_difference() {
    let files = Files::new();
    let (first, second) = (files.write("a.dmdrec", &server(5000)), files.write("b.dmdrec", &server(7000)));
    let text = stdout(&["diff", &first, &second, "--no-fix-stacks"]);
    assert!(text.contains("1.95 KiB") && !text.contains("1000 B"), "{text}");
    let json: Value =
        serde_json::from_str(&stdout(&["diff", &first, &second, "--json", "--no-fix-stacks"])).unwrap();
    assert_eq!(json["total"]["requested"], 2000);
    let message = fails(&["diff", &first, &second, "--fail-if", "explicit > +5%"], 2);
    assert!(message.contains("about-memory leaks"), "{message}");
    let message = fails(&["diff", &first, &second, "--filter", "server", "--regex"], 2);
    assert_eq!(message.trim_end(), "about-memory: --regex is for reports, not for dumps and recordings");
}

/// A program that frees all blocks before it ends, except blocks of `kept` bytes.
fn finished(kept: u64) -> Script {
    let mut script = server(kept);
    (0..10).for_each(|n| script.end(970_000 + n, 1, 0x10_000 + 0x100 * n));
    script.end(980_000, 1, 0x1000);
    script
}

#[test]
fn two_programs_that_have_ended_are_compared_at_their_peaks() {
    let files = Files::new();
    let paths = [files.write("a.dmdrec", &finished(500_000)), files.write("b.dmdrec", &finished(700_000))];
    let text = stdout(&["diff", &paths[0], &paths[1], "--no-fix-stacks"]);
    let heading = "Both at their peaks: 1.48 MiB after 0.00 s, and 1.67 MiB after 0.00 s (--at end compares the ends).\n\n";
    assert!(text.starts_with(heading) && text.contains("195.31 KiB"), "{text}");
    let text = stdout(&["diff", &paths[0], &paths[1], "--no-fix-stacks", "--at", "end"]);
    assert!(!text.contains("peaks") && !text.contains("195.31 KiB"), "{text}");
}

#[test]
fn growth_and_leaks_are_of_any_time() {
    let files = Files::new();
    let file = files.write("a.dmdrec", &finished(5000));
    let text = stdout(&["history", &file, "--no-fix-stacks", "--growth", "0.55s", "0.9s"]);
    assert!(text.starts_with("Growth from 0.55 s to 0.90 s: +800 B in +8 blocks, "), "{text}");
    let json = stdout(&["history", &file, "--json", "--no-fix-stacks", "--growth", "peak", "0.9s"]);
    assert!(json.contains("before"), "{json}");
    let text = stdout(&["leaks", &file, "--no-fix-stacks", "--at", "0.9s"]);
    assert!(text.contains("Alive 0.90 s after the start: 5.66 KiB in 9 blocks."), "{text}");
    let dump = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/dmd/degenerate-live.json");
    let message = fails(&["leaks", dump, "--at", "1s"], 1);
    assert!(message.contains("only a recording has the blocks of every time"), "{message}");
}

#[test]
fn a_recording_from_standard_input_is_read() {
    let files = Files::new();
    let file = files.write("a.dmdrec", &server(5000));
    let output = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .args(["leaks", "-", "--no-fix-stacks"])
        .stdin(fs::File::open(file).unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Leaked: 5.86 KiB in 11 blocks."), "{text}");
}

#[test]
fn a_damaged_recording_is_shown_with_a_warning() {
    let files = Files::new();
    let path = files.path("killed.dmdrec");
    let bytes = server(5000).bytes();
    fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let output = about_memory(&["leaks", path.to_str().unwrap(), "--no-fix-stacks"]);
    assert!(output.status.success());
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(warnings.contains("killed.dmdrec: it ends in the middle of the chunk at byte"), "{warnings}");
    assert!(warnings.contains("the recording has no end"), "{warnings}");
    fs::write(&path, b"DMDREC\n\x09").unwrap();
    let message = fails(&["history", path.to_str().unwrap()], 1);
    assert!(message.contains("killed.dmdrec: not a readable recording: it has version 9"), "{message}");
}
