//! `about-memory snapshot`: the answers of Firefox through the program, exit status and messages.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::read::GzDecoder;
use serde_json::Value;

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

#[test]
fn the_program_answers_as_firefox() {
    let file = golden("small-a.fxsnapshot");
    let file = file.to_str().unwrap();
    let answers: Value = serde_json::from_str(&unpacked("small-a.answers.json.gz")).unwrap();
    for (name, breakdown) in answers["breakdowns"].as_object().unwrap() {
        let breakdown = breakdown.to_string();
        let breakdown = if breakdown == "null" { "default" } else { &breakdown };
        let ours = json(&["census", file, "--breakdown", breakdown, "--json"]);
        assert_eq!(ours, answers["census"][name], "{name}");
    }
    assert_eq!(json(&["census", file, "--json"]), answers["census"]["default"]);

    let tree = json(&["tree", file, "--breakdown", "stack", "--invert", "--json"]);
    assert_eq!(tree, answers["trees"]["stack-inverted"]["tree"]);

    let mut lines: Vec<_> = unpacked("small-a.dominators.tsv.gz").lines().map(str::to_owned).collect();
    let tsv = answer(&["dominators", file, "--tsv"]);
    let mut ours: Vec<_> = tsv.lines().map(str::to_owned).collect();
    lines.sort();
    ours.sort();
    assert!(lines == ours);

    let set = &answers["shortest_paths"][1];
    let (target, max) = (set["targets"][0].to_string(), set["max"].to_string());
    let ours = json(&["paths", file, "--target", &target, "--max", &max, "--json"]);
    for key in ["start", "targets", "max", "paths", "deduplicated"] {
        assert_eq!(ours[key], set[key], "{key}");
    }

    let other = golden("small-b.fxsnapshot");
    let expected: Value = serde_json::from_str(&unpacked("small-b.diff-from-small-a.json.gz")).unwrap();
    let ours = json(&["diff", file, other.to_str().unwrap(), "--breakdown", "stack", "--json"]);
    assert_eq!(ours, expected["stack"]);
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
