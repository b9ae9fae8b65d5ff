//! Differences of dumps that Firefox's script does not compare.

use dmd_analyze::{Analysis, AnalyzeOptions, StackFilter};

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
        let options = AnalyzeOptions::new().report_filter(StackFilter::new(filter));
        let analysis = Analysis::new(read(document("dark-matter", blocks, tables)).unwrap(), &options);
        let kinds = [dmd_analyze::RecordKind::OnceReported, dmd_analyze::RecordKind::Unreported];
        kinds.map(|kind| analysis.sums(kind).req)
    };
    assert_eq!(sums("said"), [8, 0]);
    assert_eq!(sums("made"), [0, 0]);
    assert_eq!(sums("!said"), [0, 1]);
}

#[test]
fn filters_look_at_lines_as_they_are_printed() {
    let tables = r##""traceTable": {"A": ["B", "C"]},
        "frameTable": {"B": "#00: made (f.rs:1)", "C": "#00: called (f.rs:2)"}"##;
    let kept = |filter: &str| {
        let options = AnalyzeOptions::new().filter(StackFilter::new(filter));
        let dump = read(document("live", r#"{"req": 8, "alloc": "A"}"#, tables)).unwrap();
        Analysis::new(dump, &options).sums(dmd_analyze::RecordKind::Live).num == 1
    };
    for filter in ["#01: made", "    #02: called", "2: c", ": made", "", "!#03", "!#00"] {
        assert!(kept(filter), "{filter}");
    }
    for filter in ["#00", "#02: made", "#03", "!#01", "!"] {
        assert!(!kept(filter), "{filter}");
    }
}

#[test]
fn addresses_in_a_difference_are_those_of_the_later_dump() {
    let text = |first: &str, second: &str| {
        let scan = |blocks: &str| read(document("scan", blocks, TABLES)).unwrap();
        let options = AnalyzeOptions::new();
        Analysis::difference(scan(first), scan(second), &options).unwrap().text(&[]).to_string()
    };
    let (old, new) = (r#"{"req": 8, "addr": "10"}"#, r#"{"req": 8, "addr": "20"}, {"req": 8, "addr": "30"}"#);
    assert!(text(old, new).contains("  block addresses: 0x20, 0x30\n"));
    assert!(text(old, "").contains("  block addresses: 0x10\n"));
    assert!(text("", new).contains("  block addresses: 0x20, 0x30\n"));
}
