//! `about-memory snapshot`: the answers of Firefox through the program, exit status and messages.

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

/// Raw JSON of an object's entry, since the order of keys is part of an answer.
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
            // The default is told by nothing.
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

/// The same tree, but for the order of equals in lists that Firefox does not sort stably.
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
            // A `Map` of Firefox has its keys in no order.
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
    let verdicts: BTreeMap<String, Value> = serde_json::from_str(&verdicts).unwrap();
    assert_eq!(verdicts.len(), 81);
    for (name, verdict) in verdicts {
        let file = golden(&format!("handmade/{name}.fxsnapshot"));
        let output = run(&["census", file.to_str().unwrap(), "--json"]);
        let message = String::from_utf8(output.stderr).unwrap();
        // Firefox says no more than that it is refused.
        if verdict.get("accepted").is_some() {
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
    for (arguments, expected) in [
        (
            &["census", file, "--breakdown", r#"{"by":"fancy"}"#][..],
            "about-memory: unrecognized 'by' value in takeCensus breakdown: \"fancy\"\n",
        ),
        (&["census", file, "--breakdown", "null"], "about-memory: can't convert null to object\n"),
        (&["individuals", file], "about-memory: which nodes: --leaf INDEX or --name NAME\n"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    }
    assert_eq!(run(&["paths", file, "--target", "1", "--max", "0"]).status.code(), Some(2));
    // A node that is not there is the file's matter.
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
