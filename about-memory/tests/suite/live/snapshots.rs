//! `snapshot save`.

use std::fs;

use super::herd::{Herd, stderr};

#[test]
fn the_heap_of_a_process_is_saved() {
    let mut herd = Herd::new();
    let pid = herd.start("name heap").to_string();
    fs::write(herd.path().join("heap.fxsnapshot"), "what was there").unwrap();
    assert_eq!(herd.shown(&["snapshot", "save", &pid, "heap.fxsnapshot"]), "");
    let graph = heap_graph::snapshot::read(herd.path().join("heap.fxsnapshot")).unwrap();
    // The root, the registered value, the value's block, and a thousand strings.
    assert_eq!(graph.node_count(), 1003);
    assert!(graph.creation_time().is_some());
    let edge = graph.root().edges().next().unwrap();
    assert_eq!(edge.name.unwrap().to_string(), "names");
    // The process answers a second request.
    herd.shown(&["snapshot", "save", &pid, "-o", "again.fxsnapshot", "--timeout", "30"]);
    assert!(herd.path().join("again.fxsnapshot").exists());
}

#[test]
fn what_cannot_be_saved_is_one_line_and_leaves_no_file() {
    let mut herd = Herd::new();
    let (silent, refusing) = (herd.start("name"), herd.start("name bad-heap"));
    let half = herd.start("name half-heap");
    for (pid, expected) in [
        (silent, "offers no heap snapshot: its program has to call heap_graph::answer_snapshots(|roots| "),
        (refusing, "not today"),
        (half, "broke"),
        (4_200_003, "does not listen"),
    ] {
        let output = herd.about_memory(&["snapshot", "save", &pid.to_string(), "heap.fxsnapshot"]);
        assert_eq!(output.status.code(), Some(1), "{expected}");
        let message = stderr(&output);
        assert!(message.contains(expected) && message.lines().count() == 1, "{message}");
    }
    let alive = herd.start("name heap").to_string();
    let output = herd.about_memory(&["snapshot", "save", &alive, "no/such/folder.fxsnapshot"]);
    assert_eq!(output.status.code(), Some(1));
    let output = herd.about_memory(&["snapshot", "save", "name", "heap.fxsnapshot"]);
    assert_eq!(output.status.code(), Some(2));
    let left: Vec<_> = fs::read_dir(herd.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["about-memory"]);
}
