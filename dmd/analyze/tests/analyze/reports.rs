//! Faults of reports: blocks reported twice or in part, and pointers without a live block.

use dmd_analyze::program::ProgramOptions;
use dmd_analyze::{Analysis, AnalyzeOptions, Coverage, Dump, ReportFaultKind};

use super::{document, read};

/// Two reporters of the program reach the same block through the framework. The framework is in a folder beside the
/// program.
const TABLES: &str = r##""traceTable": {
        "A": ["malloc", "new", "main"],
        "R1": ["mark", "walk", "vec", "first", "collect", "main"],
        "R2": ["mark", "walk", "vec", "second", "collect", "main"],
        "R3": ["mark", "walk", "vec", "first", "collect", "main"]},
    "frameTable": {
        "malloc": "#00: malloc[/lib/libdmd.so +0x10]",
        "new": "#00: app::new (/home/me/app/src/main.rs:3)",
        "main": "#00: app::main (/home/me/app/src/main.rs:9)",
        "mark": "#00: mark[/lib/libdmd.so +0x20]",
        "walk": "#00: memory_reporter::measure::reading::block (/home/me/memory/reporter/src/measure/reading.rs:9)",
        "vec": "#00: <alloc::vec::Vec<T> as Size>::size (/home/me/memory/reporter/src/measure/impls/vec.rs:7)",
        "first": "#00: app::First::collect_reports (/home/me/app/src/first.rs:11)",
        "second": "#00: app::Second::collect_reports (/home/me/app/src/second.rs:22)",
        "collect": "#00: memory_reporter::collect::driver::run (/home/me/memory/reporter/src/collect/driver.rs:5)"},
    "modules": [],
    "reportPaths": [{"path": "explicit/first", "claimed": 50004, "marked": 100008},
        {"path": "explicit/second", "claimed": 100008, "marked": 100008},
        {"path": "explicit/amount", "claimed": 12345, "marked": 0}],
    "reportFaultCounts": {"not-heap": 1, "interior": 2, "freed": 0, "freed-since": 1},
    "reportFaults": [
        {"kind": "interior", "addr": "7f0010", "path": 0, "frames": ["#00: mark[/lib/libdmd.so +0x20]",
            "#01: memory_reporter::measure::reading::block (/home/me/memory/reporter/src/measure/reading.rs:9)",
            "#02: app::First::collect_reports (/home/me/app/src/first.rs:11)"]},
        {"kind": "interior", "addr": "7f0020", "path": 0, "frames": ["#00: mark[/lib/libdmd.so +0x20]",
            "#01: memory_reporter::measure::reading::block (/home/me/memory/reporter/src/measure/reading.rs:9)",
            "#02: app::First::collect_reports (/home/me/app/src/first.rs:11)"]},
        {"kind": "freed-since", "addr": "7f0030", "path": 1, "frames": []},
        {"kind": "of the future", "addr": "7f0030", "path": 1, "frames": []},
        {"kind": "not-heap", "addr": "400010", "frames": []}, 7]"##;

const BLOCKS: &str = r#"
    {"req": 100008, "alloc": "A", "reps": ["R1", "R2"], "repPaths": [0, 1]},
    {"req": 16, "alloc": "A", "reps": ["R1", "R3"], "repPaths": [0, 0]}"#;

fn dump() -> Dump {
    read(document("dark-matter", BLOCKS, TABLES)).unwrap()
}

fn analysis() -> Analysis {
    let options = AnalyzeOptions::new().max_frames(usize::MAX).limit(usize::MAX).types(true).reporters(true);
    Analysis::new(dump(), &options)
}

const FAULTS: &str = "
  explicit/first: 2 pointers inside a block, not at its start (interior), by app::First::collect_reports \
(src/first.rs:11)
  (no path): 1 pointer not in a heap block (not-heap)
";

#[test]
fn two_reports_of_a_block_have_their_paths_and_differ_where_they_differ() {
    let text = analysis().program_text(10, &ProgramOptions::new()).to_string();
    let records = text.split_once("Heap that reporters report twice").unwrap().1;
    assert_eq!(
        records,
        format!(
            ": 97.68 KiB in 2 blocks

1. 97.66 KiB  99.98% (99.98% so far)  in 1 block
   in app::new
  > app::new   src/main.rs:3
  > app::main  src/main.rs:9
   reported at explicit/first
  > First::collect_reports  src/first.rs:11
  > app::main               src/main.rs:9
   reported again at explicit/second
  > Second::collect_reports  src/second.rs:22
     (1 frame as in the first report)

2. 16 B  0.02% (100.00% so far)  in 1 block
   in app::new
  > app::new   src/main.rs:3
  > app::main  src/main.rs:9
   reported at explicit/first
  > First::collect_reports  src/first.rs:11
  > app::main               src/main.rs:9
   reported again at explicit/first
     (2 frames as in the first report)

Reported by amount, blocks unknown
  explicit/amount: 12,345 bytes

Partially reported: reporters whose amount differs from the blocks that they measured
  explicit/first: reported 50,004, measured 100,008 bytes

Reported pointers without a live block{FAULTS}"
        )
    );
    let all = ProgramOptions::new().all_frames(true);
    let text = analysis().program_text(10, &all).to_string();
    // The framework's sources do not count as the program's own.
    assert!(text.contains("\n    driver::run ") && text.contains("\n    <Vec<T> as Size>::size "), "{text}");
}

#[test]
fn pointers_without_a_block_are_in_every_view() {
    let faults = dump().report_faults();
    assert_eq!(faults.len(), 2);
    assert_eq!(
        (faults[0].kind, faults[0].count, faults[0].address),
        (ReportFaultKind::Interior, 2, 0x7f_0010)
    );
    let coverage = Coverage::new(dump()).unwrap().to_string();
    assert!(
        coverage.ends_with(&format!("\nReported pointers without a live block {{{FAULTS}}}\n")),
        "{coverage}"
    );
    let json: serde_json::Value = serde_json::from_str(&analysis().json().to_string()).unwrap();
    let fault = &json["reportFaults"][0];
    assert_eq!(fault["kind"], "interior");
    assert_eq!(fault["path"], "explicit/first");
    assert_eq!(fault["count"], 2);
    assert_eq!(fault["reporter"], "app::First::collect_reports");
    assert_eq!(fault["reportedAt"].as_array().unwrap().len(), 3);
    // A dump without reports has no faults.
    assert!(dump().without_reports().report_faults().is_empty());
}
