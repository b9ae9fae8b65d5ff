//! `about-memory run --types`: the types of a batch program at one moment of its life.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use super::{files, libdmd, own_sockets, stderr, with_summary};
use crate::recordings::stdout;
use crate::typed::{children, program};

/// Runs the victim; `how` chooses how it ends. The summary is on standard error.
fn run(folder: &Path, options: &[&str], how: &str) -> Output {
    victim(folder, options, how).output().unwrap()
}

fn victim(folder: &Path, options: &[&str], how: &str) -> Command {
    let victim = program("typed_heap_batch");
    let library = ["--library", libdmd().to_str().unwrap()];
    let mut command =
        with_summary(folder, &[&library, options, &["--", victim.to_str().unwrap(), how]].concat());
    own_sockets(&mut command, folder);
    command
}

/// Returns the first line that contains these words.
fn row<'t>(text: &'t str, words: &str) -> &'t str {
    let mut rows = text.lines().filter(|line| line.contains(words));
    rows.next().unwrap_or_else(|| panic!("no row with {words:?}: {text}"))
}

/// The number of blocks at the end of a row.
fn blocks(row: &str) -> u64 {
    let number = row.rsplit_once('(').and_then(|(_, rest)| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no blocks: {row}"))
}

fn has_the_table(output: &Output) {
    let text = stderr(output);
    let title = row(&text, "Types of ");
    // Without a dump the peak is unknown.
    if text.contains("\nPeak: ") {
        let percent = title.split(", at ").nth(1).and_then(|rest| rest.split('%').next());
        let percent: u32 = percent.unwrap().parse().unwrap();
        assert!((95..=100).contains(&percent), "{title}");
    }
    // The process copies itself when its heap has fallen by a 256th from the peak, so a few persons are missing.
    let nearly_all = 19_000..=20_000;
    assert!(nearly_all.contains(&blocks(row(&text, "  typed_heap_batch::Person  "))), "{text}");
    assert!(nearly_all.contains(&blocks(row(&text, "typed_heap_batch::Person.name  "))), "{text}");
    assert_eq!(blocks(row(&text, "%  table (u64, Box<typed_heap_batch::Person>)  ")), 1, "{text}");
    // Each name uses 40 of the 80 bytes of its buffer.
    assert!(row(&text, "Person.name: String: capacity beyond length").contains(", 50% full"), "{text}");
    assert!(!text.contains("Leftover"), "{text}");
}

#[test]
fn the_types_of_the_peak_are_shown_however_a_program_ends() {
    for (how, code) in [("returns", Some(0)), ("exits", Some(3)), ("killed", None)] {
        let folder = tempfile::tempdir().unwrap();
        let output = run(folder.path(), &["--types"], how);
        if code.is_some() {
            assert_eq!(output.status.code(), code, "{how}");
        }
        let said = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(said.starts_with("1689"), "{how}: {said}");
        has_the_table(&output);
    }
}

#[test]
fn other_moments_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let end = stderr(&run(folder.path(), &["--types", "--at", "end"], "returns"));
    assert_eq!(blocks(row(&end, "  typed_heap_batch::Leftover  ")), 1000, "{end}");
    assert!(!end.contains("typed_heap_batch::Person  "), "{end}");

    let late = stderr(&run(folder.path(), &["--types", "--at", "1h"], "returns"));
    assert!(late.contains("about-memory: no types: the program ended before 3600s\n"), "{late}");
}

/// The number of the process that listens in this folder.
fn listener(folder: &Path) -> Option<u32> {
    let sockets = fs::read_dir(folder.join("about-memory")).ok()?;
    let name = |socket: fs::DirEntry| socket.file_name().into_string().ok();
    sockets.flatten().filter_map(name).find_map(|name| name.split('-').next()?.parse().ok())
}

/// The program runs until the test closes its standard input. The test waits for the copy, the program's only child.
#[test]
fn a_condition_chooses_the_moment() {
    for options in [&["--types", "--when", "heap > 2900 KiB"][..], &["--types", "--at", "1s"]] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = victim(folder.path(), options, "waits");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().unwrap();
        let has_copy = || listener(folder.path()).is_some_and(|pid| !children(pid).is_empty());
        while !has_copy() {
            assert_eq!(running.try_wait().unwrap(), None, "{options:?}");
            thread::sleep(Duration::from_millis(10));
        }
        drop(running.stdin.take());
        has_the_table(&running.wait_with_output().unwrap());
    }
}

#[test]
fn types_are_saved_as_a_heap_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--types", "--snapshot", "heap.fxsnapshot"], "returns");
    assert!(stderr(&output).contains("about-memory: wrote heap.fxsnapshot\n"), "{output:?}");
    let snapshot = folder.path().join("heap.fxsnapshot");
    let tree = stdout(&["snapshot", "tree", snapshot.to_str().unwrap(), "--breakdown", "type"]);
    row(&tree, " typed_heap_batch::Person");
    assert!(files(folder.path()).iter().any(|name| name.starts_with("dmd-")));
    // No socket and no folder is left.
    assert!(fs::read_dir(folder.path()).unwrap().count() <= 3);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for options in [
        &["--types", "--sample"][..],
        &["--types", "--record", "x.dmdrec"],
        &["--types", "--wait-for-track"],
        &["--types", "--at", "peak", "--when", "heap > 1 GiB"],
        &["--at", "2s"],
        &["--snapshot", "x.fxsnapshot"],
    ] {
        assert_eq!(run(folder.path(), options, "returns").status.code(), Some(2), "{options:?}");
    }
}

/// Line tables have no types: the summary prints `unknown` instead of 0, and how to build the program.
#[test]
fn without_types_fields_are_unknown() {
    const UNKNOWN: &str = "unknown: the program has no full debug information; build it with `debug = 2` below \
                           [profile.release] in Cargo.toml.\n";
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/typed/tests/victims/batch.rs");
    let mut compile = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compile.args(["--edition=2024", "-Copt-level=1", "-Cdebuginfo=line-tables-only"]).arg(source);
    assert!(compile.current_dir(folder.path()).status().unwrap().success());
    let library = libdmd().to_str().unwrap();
    let arguments = ["--library", library, "--types", "--", "./batch", "returns"];
    let text = stderr(&with_summary(folder.path(), &arguments).output().unwrap());
    assert!(text.contains("  batch::Person  (19"), "{text}");
    assert!(
        text.contains(&format!("\nThe fields that hold them, and the unused memory, are {UNKNOWN}")),
        "{text}"
    );
    assert!(!text.contains("not used in total"), "{text}");

    let dump = folder.path().join("scan.json");
    let dump = dump.to_str().unwrap();
    let arguments = ["--library", library, "--mode", "scan", "-o", dump, "--", "./batch", "exits"];
    assert_eq!(with_summary(folder.path(), &arguments).output().unwrap().status.code(), Some(3));
    let waste = stdout(&["heap", "waste", dump]);
    assert!(waste.starts_with("The unused memory of ") && waste.contains(UNKNOWN), "{waste}");
    assert_eq!(stdout(&["heap", "tasks", dump]), format!("The async tasks are {UNKNOWN}"));
    assert_eq!(stdout(&["heap", "types", dump, "--by", "field"]), format!("The fields are {UNKNOWN}"));
    for question in ["waste", "tasks"] {
        let json: serde_json::Value =
            serde_json::from_str(&stdout(&["heap", question, dump, "--json"])).unwrap();
        let key = if question == "waste" { "unusedBytes" } else { "tasks" };
        assert!(json[key].is_null(), "{json}");
    }
}
