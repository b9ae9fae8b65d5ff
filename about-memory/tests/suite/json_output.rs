//! Each `--json` is described by a schema in `docs/schemas`, and `--limit` keeps the sums of the rest.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::json_schema::assert_valid;
use crate::recordings::stdout;

fn schemas() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas")
}

fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    path.to_str().unwrap().to_owned()
}

fn snapshot(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../heap-graph/tests/golden").join(name);
    path.to_str().unwrap().to_owned()
}

/// Checks a value against the schema with this name.
#[track_caller]
pub(crate) fn assert_described(name: &str, value: &Value) {
    let path = schemas().join(format!("{name}.schema.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_valid(&serde_json::from_str(&text).unwrap(), value, name);
}

/// Runs a command with `--json`, and checks its output.
fn described(name: &str, arguments: &[&str]) -> Value {
    let text = stdout(&[arguments, &["--json"]].concat());
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"));
    assert_described(name, &value);
    value
}

fn number(of: &Value, field: &str) -> i128 {
    of[field].as_i64().unwrap_or_else(|| panic!("{field}: {of}")).into()
}

/// Checks that the sums of the listed rows and of the rest are the whole.
#[track_caller]
fn assert_whole(rows: &Value, rest: &Value, whole: &Value, fields: &[&str]) {
    for field in fields {
        let shown: i128 = rows.as_array().unwrap().iter().map(|row| number(row, field)).sum();
        assert_eq!(shown + number(rest, field), number(whole, field), "{field}");
    }
}

const SUMS: [&str; 4] = ["blocks", "requested", "slop", "usable"];

#[test]
fn dumps_are_described() {
    let folder = golden("dmd");
    let mut seen = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let path = path.to_str().unwrap();
        let name = path.rsplit('/').next().unwrap();
        let is_dump = (name.ends_with(".json") || name.ends_with(".json.gz")) && !name.contains(".rewritten");
        if !is_dump || name.starts_with("bad-") {
            continue;
        }
        seen += 1;
        described("dmd", &["dmd", path]);
        for limit in ["0", "1", "3"] {
            let keys = ["--by", "module", "--by", "size", "--by", "type"];
            let arguments = [&["dmd", path, "--limit", limit][..], &keys].concat();
            for kind in described("dmd", &arguments)["kinds"].as_array().unwrap() {
                assert_whole(&kind["shown"], &kind["rest"], kind, &SUMS);
                for table in kind["tables"].as_array().into_iter().flatten() {
                    assert_whole(&table["shown"], &table["rest"], kind, &SUMS);
                }
            }
        }
    }
    assert!(seen > 15, "{seen}");
    let (first, second) = (golden("dmd/diff-live-1.json"), golden("dmd/diff-live-2.json"));
    for command in ["dmd", "diff"] {
        let all = described("dmd", &[command, &first, &second, "--limit", "1"]);
        for kind in all["kinds"].as_array().unwrap() {
            assert_whole(&kind["shown"], &kind["rest"], kind, &SUMS);
        }
    }
    described(
        "dmd",
        &["dmd", &golden("dmd/dark-matter-mixed.json"), "--by", "frame", "--by", "reporter", "--estimate"],
    );
}

#[test]
fn recordings_are_described() {
    for name in ["heap/before.dmdrec", "heap/after.dmdrec"] {
        let file = golden(name);
        described("history", &["history", &file]);
        let history = described("history", &["history", &file, "--limit", "1"]);
        let whole = described("history", &["history", &file]);
        for (list, rest) in [("sites", "restOfSites"), ("types", "restOfTypes"), ("threads", "restOfThreads")]
        {
            for field in ["atEnd", "allocations"] {
                let sum = |of: &Value| -> i128 {
                    of[list].as_array().unwrap().iter().map(|row| number(row, field)).sum()
                };
                assert_eq!(sum(&history) + number(&history[rest], field), sum(&whole), "{list} {field}");
            }
        }
        let growth = described("growth", &["history", &file, "--growth", "peak", "end", "--limit", "1"]);
        assert_whole(&growth["sites"], &growth["restOfSites"], &growth["total"], &["growth"]);
        for limit in ["0", "1"] {
            let leaks = described("leaks", &["leaks", &file, "--limit", limit]);
            assert_whole(&leaks["leaks"], &leaks["rest"], &leaks, &["blocks", "bytes"]);
        }
    }
    let leaks = described("leaks", &["leaks", &golden("dmd/live-basic.json"), "--limit", "2"]);
    assert_whole(&leaks["leaks"], &leaks["rest"], &leaks, &["blocks", "bytes"]);
}

#[test]
fn series_and_profiles_are_described() {
    let (first, second) = (golden("firefox/diff-sample.a.json.gz"), golden("firefox/diff-sample.b.json.gz"));
    let all = described("series", &["series", &first, &second, "--depth", "2"]);
    let cut = described("series", &["series", &first, &second, "--depth", "2", "--limit", "3"]);
    let rows = |of: &Value| of["rows"].as_array().unwrap().len();
    assert_eq!(rows(&cut), 3);
    assert_eq!(cut["rest"]["rows"], rows(&all) - 3);
    let text = stdout(&["series", &first, &second, "--limit", "1"]);
    assert!(text.contains("more; see --limit"), "{text}");

    let folder = tempfile::tempdir().unwrap();
    let profile = |name: &str| {
        let path = folder.path().join(format!("{name}.pb.gz"));
        let path = path.to_str().unwrap().to_owned();
        stdout(&["export", &golden(&format!("dmd/{name}.json")), "--no-fix-stacks", "-o", &path]);
        path
    };
    let (first, second) = (profile("diff-live-1"), profile("diff-live-2"));
    let all = described("profile-diff", &["diff", &first, &second]);
    let cut = described("profile-diff", &["diff", &first, &second, "--limit", "1"]);
    let sum: i128 = all["changes"].as_array().unwrap().iter().map(|change| number(change, "change")).sum();
    assert_eq!(number(&cut["changes"][0], "change") + number(&cut["rest"], "change"), sum);
}

#[test]
fn snapshots_are_described() {
    let (first, second) = (snapshot("small-a.fxsnapshot"), snapshot("small-b.fxsnapshot"));
    let info = described("snapshot-info", &["snapshot", "info", &first]);
    for breakdown in ["default", "type", "stack", "count", "bucket", "objectClass", "filename"] {
        described("snapshot-census", &["snapshot", "census", &first, "--breakdown", breakdown]);
        described("snapshot-tree", &["snapshot", "tree", &first, "--breakdown", breakdown]);
    }
    described("snapshot-diff", &["snapshot", "diff", &first, &second]);
    described("snapshot-dominators", &["snapshot", "dominators", &first, "--siblings", "3"]);
    described(
        "snapshot-individuals",
        &["snapshot", "individuals", &first, "--name", "strings", "--max", "7"],
    );
    described("snapshot-suspects", &["snapshot", "suspects", &first, "--percent", "5"]);
    let nodes = described(
        "snapshot-individuals",
        &["snapshot", "individuals", &first, "--name", "strings", "--max", "1"],
    );
    let node = nodes[0]["nodeId"].to_string();
    described("snapshot-paths", &["snapshot", "paths", &first, "--target", &node]);
    assert!(info["nodes"].as_u64() > Some(1000), "{info}");
}

/// A schema that no output has would not be checked.
#[test]
fn every_schema_has_a_command_and_a_version() {
    let heap = ["heap-duplicates", "heap-fields", "heap-tasks", "heap-types", "heap-waste", "heap-why"];
    let others = [
        "dmd",
        "growth",
        "history",
        "leaks",
        "profile-diff",
        "series",
        "snapshot-census",
        "snapshot-diff",
        "snapshot-dominators",
        "snapshot-individuals",
        "snapshot-info",
        "snapshot-paths",
        "snapshot-suspects",
        "snapshot-tree",
    ];
    let known: BTreeSet<String> = heap.iter().chain(&others).map(|name| (*name).to_owned()).collect();
    let files = fs::read_dir(schemas()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let found: BTreeSet<String> =
        files.filter_map(|name| name.strip_suffix(".schema.json").map(str::to_owned)).collect();
    assert_eq!(found, known);
    for name in &found {
        let schema: Value =
            serde_json::from_str(&fs::read_to_string(schemas().join(format!("{name}.schema.json"))).unwrap())
                .unwrap();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        assert!(schema["title"].as_str().is_some_and(|title| title.starts_with("about-memory ")), "{name}");
        // Firefox's own forms, and the lists beside them, have no version.
        if !name.starts_with("snapshot-") {
            assert_eq!(schema["properties"]["version"]["const"], 1, "{name}");
        }
    }
}
