//! `about-memory export --format parquet`: the files that it writes, and the arguments that it refuses. `memory-export`
//! tests the contents.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heap_graph::snapshot::{SnapshotWriteOptions, write};
use heap_graph::{GraphBuilder, NodeId, NodeParts};
use parquet::file::reader::{FileReader as _, SerializedFileReader};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn export(arguments: &[&str], folder: &Path) -> Output {
    let program = env!("CARGO_BIN_EXE_about-memory");
    Command::new(program).arg("export").args(arguments).current_dir(folder).output().unwrap()
}

fn append(source: &Path, more: &[&str], folder: &Path) -> Vec<String> {
    let source = source.to_str().unwrap();
    let arguments =
        [&[source, "--append-to", "fleet", "--time", "2026-11-22T10:00:00Z", "--host", "h"], more].concat();
    let output = export(&arguments, folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_run_that_is_added_twice_is_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let dump = golden("dmd/live-basic.json");
    let first = append(&dump, &["--service", "a/b"], folder.path());
    let contents = fs::read(folder.path().join(&first[0])).unwrap();
    assert!(contents.starts_with(b"PAR1") && contents.ends_with(b"PAR1"));
    assert_eq!(append(&dump, &["--service", "a/b"], folder.path()), first);
    assert_eq!(fs::read(folder.path().join(&first[0])).unwrap(), contents);
    assert_ne!(append(&dump, &["--service", "a/b", "--run-label", "x=y"], folder.path()), first);
    let places: Vec<&str> = first.iter().map(|file| file.rsplit_once('/').unwrap().0).collect();
    let expected =
        ["stacks", "frames"].map(|table| format!("fleet/{table}/date=2026-11-22/service_folder=a%2Fb"));
    assert_eq!(places, expected);
    let left = fs::read_dir(folder.path().join(places[0])).unwrap().count();
    assert_eq!(left, 2, "a temporary file is left");
}

/// The root points to a list of 100 bytes and to an item of 20 bytes. The list points to this item, too. Only the list
/// points to an item of 10 bytes and to a text of 7 bytes.
#[test]
fn a_census_has_the_retained_sizes_of_its_groups() {
    let mut builder = GraphBuilder::new();
    let [root, list, item, text] = ["Root", "List", "Item", "Text"].map(|name| builder.text(name).unwrap());
    for (id, type_name, size, edges) in [
        (1, root, 0, &[2, 4][..]),
        (2, list, 100, &[3, 4, 5]),
        (3, item, 10, &[6]),
        (4, item, 20, &[]),
        (5, text, 7, &[]),
        (6, text, 1, &[]),
    ] {
        let node = NodeParts::new(NodeId(id), size, type_name);
        builder.node(node).unwrap();
        edges.iter().for_each(|to| builder.edge(NodeId(*to), None).unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let graph = builder.finish().unwrap();
    let file = fs::File::create(folder.path().join("heap.fxsnapshot")).unwrap();
    write(&graph, file, &SnapshotWriteOptions::new()).unwrap();
    let output = export(&["heap.fxsnapshot", "-o", "census.parquet"], folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = fs::File::open(folder.path().join("census.parquet")).unwrap();
    let mut found = BTreeMap::new();
    for row in SerializedFileReader::new(table).unwrap().get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let field =
            |name: &str| row.get_column_iter().find(|(column, _)| *column == name).unwrap().1.to_string();
        found.insert(field("group"), ["bytes", "count", "retained"].map(field).join(" "));
    }
    let expected = [
        ("[\"other\", \"Item\"]", "30 2 31"),
        ("[\"other\", \"List\"]", "100 1 118"),
        ("[\"other\", \"Text\"]", "8 2 8"),
    ];
    assert_eq!(found, expected.map(|(group, sizes)| (group.to_owned(), sizes.to_owned())).into());
}

#[test]
fn what_does_not_fit_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let dump = golden("dmd/live-basic.json");
    let dump = dump.to_str().unwrap();
    for (arguments, expected) in [
        (&[dump, "-o", "x.parquet", "--table", "reports"][..], "has no reports"),
        (&[dump, "-o", "x.parquet", "--time", "2026-02-29T10:00:00Z"], "is not a time"),
        (&[dump, "-o", "x.parquet", "--label", "a"], "must be NAME=VALUE"),
        (&[dump, "-o", "x.parquet.gz"], "use a name without .gz"),
        (&[dump, "-o", "x.folded", "--service", "a"], "are for the format parquet"),
        (&[dump, "-o", "x.parquet", "--requested"], "both requested and usable bytes"),
        (&["missing.json", "-o", "x.parquet"], "missing.json"),
    ] {
        let output = export(arguments, folder.path());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}");
        assert!(text.contains(expected), "{text}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments:?}");
    }
}
