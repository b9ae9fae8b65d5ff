//! The state at the peak: read, checked, and analyzed as blocks.

use dmd_analyze::program::{HeapOverview, ProgramOptions};
use dmd_analyze::{Analysis, AnalyzeError, AnalyzeOptions, Coverage, DumpTime, Mode, RecordKind, TableKey};

use super::{TABLES, document, read};

const PEAK: &str = r##""bytes": 1103, "blocks": 8, "seconds": 1.5, "within": 8192,
    "stacks": [{"alloc": "A", "num": 7, "bytes": 103}, {"bytes": 1000}]"##;

fn with_peak(peak: &str) -> String {
    let tables = format!(r#""peak": {{{peak}}}, {TABLES}"#);
    document("dark-matter", r#"{"req": 5, "slop": 3, "reps": ["A"]}"#, &tables)
}

#[test]
fn the_peak_is_analyzed_as_live_blocks_are() {
    let dump = read(with_peak(PEAK)).unwrap();
    let peak = dump.peak().unwrap();
    assert_eq!((peak.bytes(), peak.blocks(), peak.within()), (1103, 8, 8192));
    assert!((peak.seconds() - 1.5).abs() < 1e-9);
    let dump = dump.at(DumpTime::Peak).unwrap();
    assert_eq!(dump.mode(), Mode::Live);
    let analysis = Analysis::new(dump, &AnalyzeOptions::new());
    let sums = analysis.sums(RecordKind::Live);
    assert_eq!((sums.num, sums.req, sums.slop), (8, 1103, 0));
    let text = analysis.text(&[]).to_string();
    assert!(text.contains("  7 blocks in heap block record 2 of 2"), "{text}");
    assert!(text.contains("Individual block sizes: unknown at the peak; their mean is 14\n"), "{text}");
    assert!(text.contains("#01: f (f.rs:1)"), "{text}");
}

#[test]
fn the_end_is_as_without_a_peak() {
    let text = |peak: &str| {
        let dump = read(with_peak(peak)).unwrap().at(DumpTime::End).unwrap();
        Analysis::new(dump, &AnalyzeOptions::new()).text(&[]).to_string()
    };
    assert_eq!(text(PEAK), text(r#""bytes": 0, "blocks": 0, "within": 0"#));
    let plain = read(document("live", "", TABLES)).unwrap();
    assert!(plain.peak().is_none() && plain.statistics().is_none());
    assert!(matches!(plain.at(DumpTime::Peak), Err(AnalyzeError::NoPeak)));
}

/// 103 bytes in seven blocks with unknown sizes.
#[test]
fn blocks_of_the_peak_have_a_mean_size() {
    let dump = read(with_peak(PEAK)).unwrap().at(DumpTime::Peak).unwrap();
    let options = AnalyzeOptions::new().max_frames(usize::MAX).limit(usize::MAX).by(TableKey::Size);
    let analysis = Analysis::new(dump, &options);
    let text = analysis.program_text(usize::MAX, &ProgramOptions::new()).to_string();
    assert!(text.contains("  in 7 blocks: mean 14 B\n"), "{text}");
    assert!(text.contains("  in 1 block\n") || text.contains("  in 1 block: "), "{text}");
    let json = analysis.json().to_string();
    assert!(json.contains(r#""sizes": [], "meanSize": 14, "#), "{json}");
    assert!(json.contains(r#""sizes": [[1000, 1]], "#), "{json}");
    assert!(
        json.contains(
            r#"{"by": "size", "rows": 1, "shown": [
    {"name": "(unknown)", "blocks": 8, "requested": 1103, "#
        ),
        "{json}"
    );
}

/// At the peak, one stack has seven blocks. At the end, a reporter has reported a block of this stack.
#[test]
fn a_block_of_the_peak_is_reported_if_one_of_its_stack_is() {
    let tables = format!(r#""peak": {{{PEAK}}}, {TABLES}"#);
    let document = document("dark-matter", r#"{"req": 5, "alloc": "A", "reps": ["A"]}"#, &tables);
    let dump = read(document).unwrap();
    assert!(dump.has_reports());
    let overview = HeapOverview::new(&dump, None);
    assert_eq!(overview.at, DumpTime::Peak);
    assert!(overview.to_string().ends_with(
        "\nAt the peak (--at end shows the end):\n\
         Reporters ran later. A block counts as reported if they reported a block of the same stack.\n"
    ));
    let dump = dump.at(DumpTime::Peak).unwrap();
    assert_eq!(dump.mode(), Mode::DarkMatter);
    let coverage = Coverage::new(dump).unwrap();
    assert_eq!((coverage.once.usable(), coverage.unreported.usable()), (103, 1000));
    assert!(coverage.to_string().starts_with("Coverage of 1,103 bytes in 8 blocks at the peak {\n"));
}

#[test]
fn nobody_has_reported_blocks_of_the_peak() {
    let dump = read(with_peak(PEAK)).unwrap().at(DumpTime::Peak).unwrap();
    assert!(matches!(Coverage::new(dump), Err(AnalyzeError::NotDarkMatter(Mode::Live))));
}

#[test]
fn statistics_are_read() {
    let statistics = r#""statistics": {"seconds": 2.25, "allocations": 10, "frees": 4, "reallocations": 3,
        "temporary": 2, "more": [1]}"#;
    let dump = read(document("live", "", &format!("{statistics}, {TABLES}"))).unwrap();
    let found = dump.statistics().unwrap();
    assert_eq!((found.allocations, found.frees, found.reallocations, found.temporary), (10, 4, 3, 2));
    assert!((found.seconds - 2.25).abs() < 1e-9);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let peak = |stacks: &str| format!(r#""bytes": 1, "blocks": 1, "within": 0, "stacks": {stacks}"#);
    for (text, expected) in [
        (r#""blocks": 0, "within": 0"#.to_owned(), "peak.bytes is missing"),
        (r#""bytes": 0, "within": 0"#.to_owned(), "peak.blocks is missing"),
        (r#""bytes": 0, "blocks": 0"#.to_owned(), "peak.within is missing"),
        (r#""bytes": -1"#.to_owned(), "peak.bytes: negative"),
        (r#""within": 1e400"#.to_owned(), "peak.within: not a whole number"),
        (r#""seconds": "1""#.to_owned(), "peak.seconds: not a number"),
        (r#""seconds": -1"#.to_owned(), "peak.seconds: not a time"),
        (r#""seconds": 1e400"#.to_owned(), "peak.seconds: not a time"),
        (peak("{}"), "peak.stacks: not an array"),
        (peak("[7]"), "peak.stacks[0]: not an object"),
        (peak(r#"[{"bytes": 1}, {"num": 2}]"#), "peak.stacks[1].bytes is missing"),
        (peak(r#"[{"bytes": 1, "num": 0}]"#), "peak.stacks[0].num: no blocks"),
        (peak(r#"[{"bytes": 1, "alloc": 7}]"#), "peak.stacks[0].alloc: not a string"),
        (peak(r#"[{"bytes": 1, "alloc": "Z"}]"#), "peak.stacks[0].alloc: no trace 'Z' in traceTable"),
        (peak(r#"[{"bytes": 2}]"#), "peak.bytes: 1, but the stacks have 2 together"),
        (peak(r#"[{"bytes": 1, "num": 3}]"#), "peak.blocks: 1, but the stacks have 3 together"),
        (
            peak(r#"[{"bytes": 18446744073709551615}, {"bytes": 2}]"#),
            "peak.bytes: 1, but the stacks have 18446744073709551617 together",
        ),
    ] {
        assert_eq!(read(with_peak(&text)).unwrap_err().to_string(), expected, "{text}");
    }
    let statistics = |text: &str| read(document("live", "", text)).unwrap_err().to_string();
    assert_eq!(statistics(r#""statistics": 7"#), "statistics: not an object");
    assert_eq!(statistics(r#""statistics": {"frees": []}"#), "statistics.frees: not a number");
    assert_eq!(statistics(r#""peak": []"#), "peak: not an object");
}
