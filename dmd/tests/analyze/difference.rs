//! Differences of dumps that no script compares.

use dmd::analyze::{Analysis, AnalyzeOptions, Filter};

use super::{TABLES, document, read};

#[test]
fn different_modes_cannot_be_compared_but_live_and_scan_can() {
    let live = || read(document("live", r#"{"req": 8}"#, TABLES)).unwrap();
    let scan = read(document("scan", r#"{"req": 8, "addr": "10"}"#, TABLES)).unwrap();
    let dark = read(document("dark-matter", "", TABLES)).unwrap();
    let options = AnalyzeOptions::new();
    assert_eq!(Analysis::difference(live(), scan, &options).unwrap().total().num, 0);
    let error = Analysis::difference(live(), dark, &options).unwrap_err();
    assert_eq!(error.to_string(), "mode dark-matter cannot be compared with mode live");
}

#[test]
fn report_stacks_can_be_filtered_by() {
    let tables = r##""traceTable": {"A": ["B"], "R": ["S"]},
        "frameTable": {"B": "#00: made (f.rs:1)", "S": "#00: said (f.rs:2)"}"##;
    let blocks = r#"{"req": 8, "alloc": "A", "reps": ["R"]}, {"req": 1, "alloc": "A"}"#;
    let sums = |filter: &str| {
        let options = AnalyzeOptions::new().report_filter(Filter::new(filter));
        let analysis = Analysis::new(read(document("dark-matter", blocks, tables)).unwrap(), &options);
        let kinds = [dmd::analyze::RecordKind::OnceReported, dmd::analyze::RecordKind::Unreported];
        kinds.map(|kind| analysis.sums(kind).req)
    };
    assert_eq!(sums("said"), [8, 0]);
    assert_eq!(sums("made"), [0, 0]);
    assert_eq!(sums("!said"), [0, 1]);
}
