//! `about-memory snapshot`: comparison with Firefox's answers, exit status and messages.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::read::GzDecoder;
use serde_json::Value;
use serde_json::value::RawValue;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/tests/golden").join(name)
}

fn unpacked(name: &str) -> String {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(golden(name)).unwrap()).read_to_string(&mut text).unwrap();
    text
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_about-memory")).arg("snapshot").args(arguments).output().unwrap()
}

fn answer(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(arguments)).unwrap()
}

/// Returns the raw JSON of an object's entry. Raw, because the order of keys is part of an answer.
fn raw<'a>(object: &'a RawValue, key: &str) -> &'a RawValue {
    entries(object).into_iter().find(|(name, _)| *name == key).unwrap_or_else(|| panic!("no {key}")).1
}

fn entries(object: &RawValue) -> Vec<(String, &RawValue)> {
    serde_json::from_str::<BTreeMap<String, &RawValue>>(object.get()).unwrap().into_iter().collect()
}

fn answers(name: &str) -> Box<RawValue> {
    RawValue::from_string(unpacked(name)).unwrap()
}

fn assert_same(ours: &str, theirs: &RawValue, what: &str) {
    let ours = ours.trim_end();
    let same = ours.bytes().zip(theirs.get().bytes()).take_while(|(a, b)| a == b).count();
    assert!(ours == theirs.get(), "{what}: differs from byte {same} on");
}

const SMALL: [&str; 2] = ["small-a", "small-b"];

#[test]
fn every_census_is_firefox_s() {
    for name in SMALL {
        let file = golden(&format!("{name}.fxsnapshot"));
        let file = file.to_str().unwrap();
        let answers = answers(&format!("{name}.answers.json.gz"));
        let census = raw(&answers, "census");
        let breakdowns = entries(raw(&answers, "breakdowns"));
        assert_eq!(breakdowns.len(), 20);
        for (kind, breakdown) in breakdowns {
            // The default breakdown needs no option.
            let ours = match breakdown.get() {
                "null" => answer(&["census", file, "--json"]),
                breakdown => answer(&["census", file, "--breakdown", breakdown, "--json"]),
            };
            assert_same(&ours, raw(census, &kind), &format!("{name}: {kind}"));
        }
    }
    let ours = answer(&["census", golden("medium.fxsnapshot").to_str().unwrap(), "--json"]);
    assert_same(&ours, raw(raw(&answers("medium.answers.json.gz"), "census"), "default"), "medium");
}

#[test]
fn every_tree_is_firefox_s() {
    for name in SMALL {
        let file = golden(&format!("{name}.fxsnapshot"));
        let answers = answers(&format!("{name}.answers.json.gz"));
        for (kind, expected) in entries(raw(&answers, "trees")) {
            let options: Value = serde_json::from_str(raw(expected, "options").get()).unwrap();
            let breakdown = raw(expected, "breakdown").get();
            let mut arguments = vec!["tree", file.to_str().unwrap(), "--breakdown", breakdown, "--json"];
            arguments.extend(options["invert"].as_bool().and_then(|invert| invert.then_some("--invert")));
            if let Some(text) = options["filter"].as_str() {
                arguments.extend(["--filter", text]);
            }
            assert_same(&answer(&arguments), raw(expected, "tree"), &format!("{name}: {kind}"));
        }
    }
}

#[test]
fn every_dominator_is_firefox_s() {
    for name in ["small-a", "small-b", "medium"] {
        let file = golden(&format!("{name}.fxsnapshot"));
        let expected = unpacked(&format!("{name}.dominators.tsv.gz"));
        let tsv = answer(&["dominators", file.to_str().unwrap(), "--tsv"]);
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert!(sorted(&tsv) == sorted(&expected), "{name}");

        let tree = json(&["dominators", file.to_str().unwrap(), "--json"]);
        let answers = answers(&format!("{name}.answers.json.gz"));
        let expected: Value = serde_json::from_str(raw(&answers, "dominator_tree_node").get()).unwrap();
        assert_nodes(&tree, &expected, &tree["nodeId"]);
    }
}

/// Compares trees, except for the order of equal entries in lists that Firefox does not sort stably.
fn assert_nodes(ours: &Value, theirs: &Value, what: &Value) {
    let children = |node: &Value| node.get("children").and_then(Value::as_array).cloned().unwrap_or_default();
    let keys = |node: &Value| node.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let sizes = |nodes: &[Value]| nodes.iter().map(|node| node["retainedSize"].clone()).collect::<Vec<_>>();
    let (our_children, their_children) = (children(ours), children(theirs));
    assert_eq!(keys(ours), keys(theirs), "{what}");
    assert_eq!(sizes(&our_children), sizes(&their_children), "{what}");
    for key in ["nodeId", "label", "shallowSize", "retainedSize", "parentId", "moreChildrenAvailable"] {
        assert_eq!(ours.get(key), theirs.get(key), "{what}: {key}");
    }
    for child in &our_children {
        let id = &child["nodeId"];
        if let Some(same) = their_children.iter().find(|their| their["nodeId"] == *id) {
            assert_nodes(child, same, id);
        }
    }
}

#[test]
fn every_path_is_firefox_s() {
    for name in ["small-a", "small-b", "medium"] {
        let file = golden(&format!("{name}.fxsnapshot"));
        let answers = answers(&format!("{name}.answers.json.gz"));
        let sets: Vec<Value> = serde_json::from_str(raw(&answers, "shortest_paths").get()).unwrap();
        assert_eq!(sets.len(), 5);
        for set in sets {
            let text = |key: &str| set[key].to_string();
            let (start, max) = (text("start"), text("max"));
            let targets: Vec<_> = set["targets"].as_array().unwrap().iter().map(Value::to_string).collect();
            let mut arguments = vec!["paths", file.to_str().unwrap(), "--start", &start, "--max", &max];
            arguments.extend(["--json", "--target"]);
            arguments.extend(targets.iter().map(String::as_str));
            let ours = json(&arguments);
            for key in ["start", "targets", "max"] {
                assert_eq!(ours[key], set[key], "{name}: {key}");
            }
            // The keys of Firefox's `Map` have no order.
            let theirs = set["paths"].as_array().unwrap();
            assert_eq!(ours["paths"].as_array().unwrap().len(), theirs.len());
            for (at, entry) in ours["paths"].as_array().unwrap().iter().enumerate() {
                let place = theirs.iter().position(|their| their[0] == entry[0]).unwrap();
                assert_eq!(*entry, theirs[place], "{name}");
                assert_eq!(ours["deduplicated"][at], set["deduplicated"][place], "{name}");
            }
        }
    }
}

#[test]
fn every_difference_is_firefox_s() {
    let (first, second) = (golden("small-a.fxsnapshot"), golden("small-b.fxsnapshot"));
    let expected = answers("small-b.diff-from-small-a.json.gz");
    let kinds = entries(&expected);
    assert_eq!(kinds.len(), 3);
    for (kind, expected) in kinds {
        let breakdown = raw(expected, "breakdown").get();
        let files = [first.to_str().unwrap(), second.to_str().unwrap()];
        let ours = answer(&["diff", files[0], files[1], "--breakdown", breakdown, "--json"]);
        assert_same(&ours, expected, &kind);
    }
}

#[test]
fn a_refused_file_is_one_line_and_status_1() {
    for question in ["info", "census", "tree", "dominators", "suspects"] {
        let file = golden("handmade/coarse-5.fxsnapshot");
        let output = run(&[question, file.to_str().unwrap()]);
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(
            message.ends_with(
                "coarse-5.fxsnapshot: message 3 (Node), field coarseType, at unpacked byte 71: there is no coarse type 5\n"
            ),
            "{message}"
        );
    }
}

#[test]
fn every_handmade_file_is_taken_or_refused_as_by_firefox() {
    let verdicts = fs::read_to_string(golden("handmade/verdicts.json")).unwrap();
    let verdicts = RawValue::from_string(verdicts).unwrap();
    let verdicts = entries(&verdicts);
    assert_eq!(verdicts.len(), 81);
    for (name, verdict) in verdicts {
        let taken = entries(verdict).iter().any(|(key, _)| key == "accepted");
        let file = golden(&format!("handmade/{name}.fxsnapshot"));
        let output = run(&["census", file.to_str().unwrap(), "--breakdown", "count", "--json"]);
        let message = String::from_utf8(output.stderr).unwrap();
        // Firefox gives no reason for its refusals.
        if taken {
            assert_eq!((output.status.code(), &*message), (Some(0), ""), "{name}");
        } else {
            assert_eq!((output.status.code(), message.lines().count()), (Some(1), 1), "{name}: {message}");
            assert!(message.contains(&format!("{name}.fxsnapshot: ")), "{message}");
        }
    }
}

#[test]
fn wrong_usage_is_status_2() {
    let file = golden("small-a.fxsnapshot");
    let file = file.to_str().unwrap();
    let accepted = "; a breakdown is an object with 'by' (count, bucket, internalType, descriptiveType, objectClass, \
                    coarseType, filename, allocationStack), or an array of breakdowns\n";
    let unrecognized = "about-memory: unrecognized 'by' value in takeCensus breakdown";
    for (arguments, expected) in [
        (
            &["census", file, "--breakdown", r#"{"by":"fancy"}"#][..],
            &*format!("{unrecognized}: \"fancy\"{accepted}"),
        ),
        (
            &["census", file, "--breakdown", "null"],
            &*format!("about-memory: can't convert null to object{accepted}"),
        ),
        (&["census", file, "--breakdown", "7"], &*format!("{unrecognized}: \"undefined\"{accepted}")),
        (&["individuals", file], "about-memory: no nodes chosen; give --leaf INDEX or --name NAME\n"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    }
    assert_eq!(run(&["paths", file, "--target", "1", "--max", "0"]).status.code(), Some(2));
    // A missing node is an error of the file, not of the arguments.
    assert_eq!(run(&["paths", file, "--target", "1"]).status.code(), Some(1));
}

#[test]
fn what_is_exported_answers_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (golden("small-b.fxsnapshot"), folder.path().join("again.fxsnapshot"));
    let output = run(&["export", first.to_str().unwrap(), "--to", "fxsnapshot"]);
    fs::write(&second, output.stdout).unwrap();
    let report = |file: &Path| answer(&["census", file.to_str().unwrap(), "--breakdown", "stack", "--json"]);
    assert_eq!(report(&first), report(&second));
    let dot = answer(&["export", first.to_str().unwrap(), "--to", "dot", "--max-nodes", "5"]);
    assert!(dot.starts_with("digraph heap {\n"), "{dot}");
}

fn small() -> String {
    golden("small-a.fxsnapshot").to_str().unwrap().to_owned()
}

/// Returns the message of a failing program, which must be one line.
fn failure(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

#[test]
fn info_counts_what_is_there() {
    let info = json(&["info", &small(), "--json"]);
    let text = answer(&["info", &small()]);
    let tsv = answer(&["dominators", &small(), "--tsv"]);
    assert!(info["nodes"].as_u64().unwrap() >= tsv.lines().count() as u64);
    for (key, name) in [("nodes", "nodes"), ("edges", "edges"), ("bytes", "bytes in all nodes")] {
        assert!(text.contains(&format!("{} {name}\n", info[key])), "{key}: {text}");
    }
    let kinds = ["objects", "strings", "scripts", "other", "domNode"];
    let sum: u64 = kinds.iter().map(|kind| info[kind].as_u64().unwrap()).sum();
    assert_eq!(info["nodes"].as_u64(), Some(sum));
}

#[test]
fn individuals_are_those_behind_a_name() {
    let nodes = json(&["individuals", &small(), "--name", "strings", "--max", "7", "--json"]);
    let nodes = nodes.as_array().unwrap();
    assert_eq!(nodes.len(), 7);
    let retained: Vec<_> = nodes.iter().map(|node| node["retainedSize"].as_u64().unwrap()).collect();
    assert!(retained.is_sorted_by(|a, b| a >= b), "{retained:?}");
    let text = answer(&["individuals", &small(), "--name", "strings", "--max", "7"]);
    assert_eq!(text.lines().count(), 8);
    assert!(text.contains(&nodes[0]["nodeId"].to_string()), "{text}");
}

#[test]
fn suspects_retain_their_part() {
    let whole: u64 = answer(&["dominators", &small(), "--tsv"])
        .lines()
        .skip(1)
        .filter_map(|line| line.rsplit('\t').next()?.parse::<u64>().ok())
        .max()
        .unwrap();
    let suspects = json(&["suspects", &small(), "--percent", "5", "--json"]);
    assert!(!suspects.as_array().unwrap().is_empty());
    for suspect in suspects.as_array().unwrap() {
        assert!(suspect["retainedSize"].as_u64().unwrap() >= whole / 20, "{suspect}");
    }
    assert!(answer(&["suspects", &small()]).contains(" bytes in all\n"));
    let none = answer(&["suspects", &small(), "--percent", "100"]);
    assert!(none.ends_with("No node or class retains 100% of these bytes.\n"), "{none}");
}

#[test]
fn dominators_are_told_by_class_and_from_any_node() {
    let text = answer(&["dominators", &small(), "--by-class"]);
    let sizes: Vec<u64> =
        text.lines().skip(1).map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect();
    assert!(sizes.len() > 5 && sizes.is_sorted_by(|a, b| a >= b), "{text}");
    let tsv = answer(&["dominators", &small(), "--tsv"]);
    let node = tsv.lines().nth(1).unwrap().split('\t').next().unwrap();
    let top = answer(&["dominators", &small(), "--start", node, "--depth", "1"]);
    assert!(top.lines().nth(1).unwrap().contains(node), "{top}");
}

#[test]
fn a_node_that_the_root_does_not_reach_dominates_nothing() {
    use heap_graph::{GraphBuilder, NodeId, NodeParts};

    let mut builder = GraphBuilder::new();
    let name = builder.text("Node").unwrap();
    for id in [8, 16] {
        builder.node(NodeParts::new(NodeId(id), 1, name)).unwrap();
    }
    let graph = builder.finish().unwrap();
    let bytes =
        heap_graph::snapshot::write(&graph, Vec::new(), &heap_graph::snapshot::SnapshotWriteOptions::new());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.fxsnapshot");
    fs::write(&path, bytes.unwrap()).unwrap();
    let path = path.to_str().unwrap();
    let message = failure(&["dominators", path, "--start", "16"]);
    assert!(message.ends_with("two.fxsnapshot: the root does not reach node 16\n"), "{message}");
    answer(&["dominators", path, "--start", "8"]);
}

#[test]
fn the_shortest_paths_and_the_exports_are_of_their_shapes() {
    let tsv = answer(&["dominators", &small(), "--tsv"]);
    let node = tsv.lines().last().unwrap().split('\t').next().unwrap();
    let text = answer(&["paths", &small(), "--shortest", "--max", "2", "--target", node]);
    assert!(text.starts_with(node) && text.contains("\n    ."), "{text}");
    let paths = json(&["paths", &small(), "--shortest", "--max", "2", "--json", "--target", node]);
    assert!(paths.to_string().contains("\"predecessor\""), "{paths}");

    let info = json(&["info", &small(), "--json"]);
    let v8 = json(&["export", &small(), "--to", "v8"]);
    assert_eq!(v8["snapshot"]["node_count"], info["nodes"]);
    let dot = answer(&["export", &small(), "--to", "dot", "--max-nodes", "10"]);
    assert!(dot.starts_with("digraph") && dot.trim_end().ends_with('}'), "{dot}");
    let graphml = answer(&["export", &small(), "--to", "graphml", "--max-nodes", "10"]);
    assert_eq!(graphml.matches("<node ").count(), 10, "{graphml}");
    assert!(graphml.trim_end().ends_with("</graphml>"), "{graphml}");
}

#[test]
fn more_bytes_than_allowed_are_refused_in_one_line() {
    let message = failure(&["info", &small(), "--max-bytes", "5000"]);
    assert!(
        message.contains("small-a.fxsnapshot: message ") && message.contains("5000 unpacked bytes"),
        "{message}"
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let message = failure(&["info", pipe.to_str().unwrap()]);
    assert!(message.ends_with("pipe: is not a regular file\n"), "{message}");
}

#[test]
fn a_stack_of_thousands_of_frames_is_printed() {
    use heap_graph::graph::FrameParts;
    use heap_graph::{GraphBuilder, NodeId, NodeParts};

    let mut builder = GraphBuilder::new();
    let text = builder.text("deep").unwrap();
    let mut stack = None;
    for line in 1..=9_000_u32 {
        let (source, is_system) = (text, false);
        let parts = FrameParts {
            parent: stack,
            source,
            line,
            column: 1,
            function: None,
            is_system,
            is_self_hosted: false,
        };
        stack = Some(builder.frame(parts).unwrap());
        if line % 80 == 0 {
            let id = NodeId(line.into());
            builder.node(NodeParts { allocation_stack: stack, ..NodeParts::new(id, 1, text) }).unwrap();
            if line < 9_000 - 80 {
                builder.edge(NodeId(u64::from(line) + 80), None).unwrap();
            }
        }
    }
    let graph = builder.finish().unwrap();
    let bytes =
        heap_graph::snapshot::write(&graph, Vec::new(), &heap_graph::snapshot::SnapshotWriteOptions::new());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.fxsnapshot");
    fs::write(&path, bytes.unwrap()).unwrap();
    let path = path.to_str().unwrap();
    let text = answer(&["tree", path, "--breakdown", "stack"]);
    assert!(text.lines().count() > 8_900, "{}", text.lines().count());
    let census = json(&["census", path, "--breakdown", "stack", "--json"]);
    assert_eq!(census["@map"].as_array().unwrap().len(), 111);
}
