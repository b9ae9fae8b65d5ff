//! `about-memory block --retained` and `--chain`, and symbols in their text.

use std::process::{Command, Output};

/// A table (1000) points to two rows (2000 and 3000), and both rows point to a name (4000). The row 2000 also points
/// into the middle of a text (5000). A ring (6000, 7000) points to a text (8000).
const DUMP: &str = r##"{"version": 5, "invocation": {"dmdEnvVar": "--mode=scan", "mode": "scan"},
"blockList": [
    {"addr": "1000", "contents": ["2000", "0", "3000"], "req": 24, "slop": 8, "alloc": "A"},
    {"addr": "2000", "contents": ["4000", "5010"], "req": 16, "alloc": "B"},
    {"addr": "3000", "contents": ["4000"], "req": 8, "alloc": "B"},
    {"addr": "4000", "req": 4, "alloc": "B"},
    {"addr": "5000", "contents": ["0", "0", "0", "0"], "req": 32},
    {"addr": "6000", "contents": ["7000"], "req": 8},
    {"addr": "7000", "contents": ["6000", "8000"], "req": 16},
    {"addr": "8000", "contents": ["8000"], "req": 8}
],
"traceTable": {"A": ["C"], "B": ["D", "C"]},
"frameTable": {"C": "#00: app::load (app.rs:7)", "D": "#00: malloc (malloc.c:1)"},
"modules": []}"##;

fn block(dump: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scan.json");
    std::fs::write(&file, dump).unwrap();
    Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .arg("block")
        .arg("scan.json")
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

fn text(arguments: &[&str]) -> String {
    let output = block(DUMP, arguments);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_a_block_retains_and_what_retains_it() {
    assert_eq!(
        text(&["2000", "--retained"]),
        "Retains 48 bytes in 2 blocks, itself included {
  0x2000: 16 bytes, app::load (app.rs:7)
  0x5000: 32 bytes, (no stack trace)
}

Each of these blocks alone keeps it alive, the nearest first {
  0x1000: 32 bytes, app::load (app.rs:7)
  outside of the heap
}
"
    );
    // Two rows share the name, so neither row alone keeps the name alive.
    let shared = text(&["4000", "--retained"]);
    assert!(shared.starts_with("Retains 4 bytes in 1 block, itself included {\n"), "{shared}");
    assert!(
        !shared.contains("0x2000") && !shared.contains("0x3000") && shared.contains("  0x1000"),
        "{shared}"
    );
    let table = text(&["1000", "--retained"]);
    assert!(table.starts_with("Retains 92 bytes in 5 blocks, itself included {\n"), "{table}");
}

#[test]
fn a_chain_leads_to_the_block_from_outside_of_the_heap() {
    assert_eq!(
        text(&["0x5000", "--chain"]),
        "A shortest chain to the block {
  outside of the heap
  0x1000: 32 bytes, app::load (app.rs:7)
    points at byte offset 0 to
  0x2000: 16 bytes, app::load (app.rs:7)
    points at byte offset 8 to
  0x5000: 32 bytes, (no stack trace)
}
"
    );
}

#[test]
fn a_ring_that_nothing_points_to_is_held_at_one_block() {
    let chain = text(&["8000", "--chain"]);
    assert!(chain.contains("  outside of the heap\n"), "{chain}");
    assert!(
        chain.contains("  0x7000: 16 bytes, (no stack trace)\n    points at byte offset 8 to\n"),
        "{chain}"
    );
    let both = text(&["8000", "--retained", "--chain"]);
    assert!(both.starts_with("Retains 8 bytes in 1 block"), "{both}");
    assert!(both.ends_with(&format!("\n\n{chain}")), "{both}");
}

#[test]
fn a_wrong_address_or_dump_gives_an_error() {
    for (dump, address, said) in [
        (DUMP, "2008", "scan.json: no block starts at 0x2008"),
        (&*DUMP.replace("scan", "live"), "2000", "scan.json: "),
    ] {
        let output = block(dump, &[address, "--retained"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(said) && error.lines().count() == 1, "{error}");
    }
    assert_eq!(block(DUMP, &["2000", "--retained", "--info"]).status.code(), Some(2));
}

#[inline(never)]
fn allocates_for_a_dump() -> usize {
    std::hint::black_box(allocates_for_a_dump as fn() -> usize) as usize
}

/// Returns a frame of this program, as in our dumps.
fn frame() -> String {
    let exe = std::env::current_exe().unwrap();
    let exe = exe.to_str().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let start = maps.lines().find(|line| line.ends_with(exe)).unwrap().split('-').next().unwrap();
    let offset = allocates_for_a_dump() - usize::from_str_radix(start, 16).unwrap();
    format!("#00: ???[{exe} +0x{:x}]", offset + 1)
}

#[test]
fn frames_that_only_name_a_file_are_looked_up() {
    let dump = DUMP.replace("#00: app::load (app.rs:7)", &frame());
    let shown = |arguments: &[&str]| {
        let output = block(&dump, arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for arguments in [&["2000", "--retained"][..], &["5000", "--chain"], &["4000"], &["4000", "-a"]] {
        let text = shown(arguments);
        assert!(text.contains("allocates_for_a_dump") && !text.contains("???"), "{arguments:?}: {text}");
        let raw = shown(&[arguments, &["--no-fix-stacks"]].concat());
        assert!(!raw.contains("allocates_for_a_dump"), "{arguments:?}: {raw}");
    }
}
