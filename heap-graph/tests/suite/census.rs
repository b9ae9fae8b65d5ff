//! Compares censuses with Firefox's: each key with its counts, in the same order.

use std::collections::BTreeMap;

use heap_graph::graph::GraphFrameId;
use heap_graph::live::SiteFrame;
use heap_graph::{Breakdown, GraphBuilder, NodeId, NodeParts, census, snapshot};
use serde_json::Value;

use crate::golden::{self, SNAPSHOTS};

/// Stores all written bytes, and the size of the largest write.
struct Sizes(Vec<u8>, usize);

impl std::io::Write for Sizes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1 = self.1.max(bytes.len());
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_report_is_written_in_pieces() {
    let graph = golden::snapshot("medium");
    for name in ["stack", "bucket", "type"] {
        let report = census(&graph, &Breakdown::preset(name).unwrap()).unwrap();
        let mut written = Sizes(Vec::new(), 0);
        report.write_json(&mut written).unwrap();
        assert!(written.0 == report.to_json().as_bytes(), "{name}");
        assert!(written.1 < 70_000, "{name}: {}", written.1);
    }
    let bucket = census(&graph, &Breakdown::preset("bucket").unwrap()).unwrap();
    let mut full = [0_u8; 100_000];
    let error = bucket.write_json(&mut full[..]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WriteZero);
}

#[test]
fn every_census_of_firefox_is_ours() {
    for name in SNAPSHOTS {
        let graph = golden::snapshot(name);
        let answers = golden::answers(name);
        let breakdowns: BTreeMap<_, _> = golden::entries(answers.get("breakdowns")).into_iter().collect();
        let censuses = golden::entries(answers.get("census"));
        assert_eq!(censuses.len(), 20);
        for (kind, expected) in censuses {
            let breakdown = match breakdowns[&kind].get() {
                "null" => Breakdown::default(),
                json => Breakdown::parse(json).unwrap(),
            };
            let report = census(&graph, &breakdown).unwrap();
            assert!(report.to_json() == expected.get(), "{name}: {kind}");
        }
    }
}

#[test]
fn every_handmade_snapshot_is_counted_as_by_firefox() {
    for (name, verdict) in golden::entries(&golden::raw("handmade/verdicts.json")) {
        let verdict = golden::entries(&verdict);
        let Ok(graph) = snapshot::read(golden::path(&format!("handmade/{name}.fxsnapshot"))) else {
            continue;
        };
        for (key, expected) in verdict {
            let breakdown = match key.as_str() {
                "count" | "internalType" | "objectClass" | "filename" => format!(r#"{{"by":"{key}"}}"#),
                "coarseType" => r#"{"by":"coarseType","domNode":{"by":"descriptiveType"}}"#.to_owned(),
                "stack" => r#"{"by":"allocationStack"}"#.to_owned(),
                "ids" => r#"{"by":"bucket"}"#.to_owned(),
                _ => continue,
            };
            let expected = match (name.as_str(), key.as_str()) {
                // Firefox does not count one of the nodes here.
                ("duplicate-type-name-text-reachable", "internalType") => {
                    r#"{"Dup":{"count":2,"bytes":30}}"#.to_owned()
                }
                // Sums wrap in Firefox, and JavaScript rounds them.
                ("size-2to64-minus-1", _) if key != "ids" => continue,
                _ => golden::compact(expected.get()),
            };
            let report = census(&graph, &Breakdown::parse(&breakdown).unwrap());
            let ours = match report {
                Ok(report) => report.to_json(),
                Err(_) => r#"{"error":"NS_ERROR_UNEXPECTED"}"#.to_owned(),
            };
            assert_eq!(ours, expected, "{name}: {key}");
        }
    }
}

#[test]
fn sums_do_not_wrap() {
    let graph = golden::snapshot("handmade/size-2to64-minus-1");
    let report = census(&graph, &Breakdown::preset("count").unwrap()).unwrap();
    assert_eq!(report.to_json(), r#"{"count":2,"bytes":18446744073709551631}"#);
}

#[test]
fn bad_breakdowns_get_firefox_s_words() {
    let graph = golden::snapshot("small-b");
    let errors: Value = serde_json::from_str(&golden::text("errors.json")).unwrap();
    for (name, case) in errors["breakdowns"].as_object().unwrap() {
        let expected = case["result"]["error"].as_str();
        let ours = match Breakdown::from_json(&case["breakdown"]) {
            Ok(breakdown) => census(&graph, &breakdown).map_err(|error| error.to_string()),
            Err(error) => Err(format!("TypeError: {error}")),
        };
        match (name.as_str(), ours) {
            // Firefox rejects the array, which this crate accepts. Both reject the other breakdown; the texts differ.
            ("array-of-two", Ok(_)) | ("descriptiveType-at-top", Err(_)) => {}
            // Firefox ignores unknown keys in a breakdown.
            (_, Err(error)) if error.contains("unrecognized key") => {
                assert_eq!(expected, None, "{name}: {error}");
            }
            // The message starts with Firefox's words. The accepted values follow.
            (_, Err(error)) => assert!(error.starts_with(expected.unwrap()), "{name}: {error}"),
            (_, Ok(report)) => {
                let report: Value = serde_json::from_str(&report.to_json()).unwrap();
                assert_eq!(report, case["result"]["ok"], "{name}");
            }
        }
    }
}

#[test]
fn a_rejected_breakdown_says_what_is_accepted() {
    let accepted = "a breakdown is an object with 'by' (count, bucket, internalType, descriptiveType, objectClass, \
                    coarseType, filename, allocationStack), or an array of breakdowns";
    let unrecognized = "unrecognized 'by' value in takeCensus breakdown";
    for (json, message) in [
        ("{}", format!("{unrecognized}: \"undefined\"; {accepted}")),
        ("7", format!("{unrecognized}: \"undefined\"; {accepted}")),
        (r#"{"by": "class"}"#, format!("{unrecognized}: \"class\"; {accepted}")),
        (
            r#"{"by": "objectClass", "than": {"by": "count"}}"#,
            "unrecognized key \"than\" in a takeCensus breakdown by \"objectClass\"; the allowed keys are by, then, other"
                .to_owned(),
        ),
        (
            r#"{"by": "coarseType", "objects": {"by": "bucket", "then": {"by": "count"}}}"#,
            "unrecognized key \"then\" in a takeCensus breakdown by \"bucket\"; the allowed keys are by".to_owned(),
        ),
    ] {
        assert_eq!(Breakdown::parse(json).unwrap_err().to_string(), message, "{json}");
    }
}

/// Accepts the options of Firefox's `takeCensus`.
#[test]
fn options_of_a_census_are_a_breakdown_too() {
    let inner = r#"{"by": "objectClass", "then": {"by": "bucket"}}"#;
    let options = format!("{{\"breakdown\": {inner}}}");
    assert_eq!(Breakdown::parse(&options), Breakdown::parse(inner));
    assert!(Breakdown::parse(r#"{"breakdown": {"by": "count"}, "by": "count"}"#).is_err());
}

/// Firefox's documentation promises the key `null` for nodes whose recorded stack has no frames.
#[test]
fn nodes_of_an_empty_stack_are_under_null() {
    let mut builder = GraphBuilder::new();
    let object = builder.text("Object").unwrap();
    let frame = SiteFrame { source: "a.js".to_owned(), line: 1, ..SiteFrame::default() };
    let stack = builder.stack(&[frame]).unwrap();
    assert_eq!(builder.stack(&[]), Ok(None));
    let empty = Some(GraphFrameId::EMPTY_STACK);
    for (id, stack) in [(1, None), (2, stack), (3, empty), (4, empty), (5, None)] {
        builder
            .node(NodeParts { allocation_stack: stack, ..NodeParts::new(NodeId(id), 10, object) })
            .unwrap();
        if id == 1 {
            (2..=5).for_each(|to| builder.edge(NodeId(to), None).unwrap());
        }
    }
    let graph = builder.finish().unwrap();
    let by_stack = Breakdown::parse(r#"{"by": "allocationStack"}"#).unwrap();
    let report = census(&graph, &by_stack).unwrap();
    assert_eq!(
        report.to_json(),
        r#"{"@map":[[null,{"count":2,"bytes":20}],[[["a.js",1,0,null,null]],{"count":1,"bytes":10}],["noStack",{"count":1,"bytes":10}]]}"#
    );
    assert!(graph.find(NodeId(3)).unwrap().allocation_stack().is_none());
    // Writing succeeds, although the file format cannot store an empty stack.
    let mut file = Vec::new();
    snapshot::write(&graph, &mut file, &snapshot::SnapshotWriteOptions::new()).unwrap();
}

#[test]
fn a_label_is_what_javascript_makes_of_it() {
    for (label, expected) in [
        ("-0.0", "0"),
        ("9007199254740993", "9007199254740992"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("1e-7", "1e-7"),
        ("0.1", "0.1"),
        ("[1,[2,null],\"x\"]", "1,2,,x"),
        ("{}", "[object Object]"),
        ("null", "null"),
    ] {
        let breakdown = Breakdown::parse(&format!(r#"{{"by":"count","label":{label}}}"#)).unwrap();
        assert!(
            matches!(&breakdown, Breakdown::Count { label: Some(label), .. } if label == expected),
            "{label}: {breakdown:?}"
        );
    }
}

#[test]
fn an_array_counts_by_each() {
    let graph = golden::snapshot("small-a");
    let both = r#"[{"by":"count"},[{"by":"coarseType"},{"by":"bucket"}]]"#;
    let both = census(&graph, &Breakdown::parse(both).unwrap()).unwrap().to_json();
    let one = |name| census(&graph, &Breakdown::preset(name).unwrap()).unwrap().to_json();
    assert_eq!(both, format!("[{},[{},{}]]", one("count"), one("coarseType"), one("bucket")));
}

#[test]
fn every_preset_is_a_breakdown() {
    for (name, _) in Breakdown::PRESETS {
        assert!(Breakdown::preset(name).is_some(), "{name}");
    }
    assert_eq!(Breakdown::preset("default"), Some(Breakdown::default()));
}
