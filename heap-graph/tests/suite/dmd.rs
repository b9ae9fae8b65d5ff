//! Allocation stacks of a program that DMD records.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use heap_graph::{Graph, snapshot};

/// The program, in a folder beside that of this test.
fn victim() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().with_file_name("examples").join("heap_graph_victim")
}

fn saved(dmd: Option<&str>) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heap.fxsnapshot");
    // The command of an emulator, if the tests are built for another processor.
    let runner = std::env::var("PROGRAM_RUNNER").unwrap_or_default();
    let program = victim();
    let mut words = runner.split_whitespace().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).arg(&path).env_remove("DMD").envs(dmd.map(|dmd| ("DMD", dmd)));
    assert!(command.status().unwrap().success());
    snapshot::read(&path).unwrap()
}

/// The functions on the stacks of nodes of a class, those of each node joined.
fn stacks(graph: &Graph, type_name: &str) -> Vec<String> {
    let nodes = graph.nodes().filter(|node| node.type_name() == type_name);
    let functions = |node: heap_graph::Node<'_>| {
        let frames = node.allocation_stack().into_iter().flat_map(heap_graph::graph::AllocationStack::frames);
        let names: Vec<_> = frames
            .filter_map(heap_graph::graph::AllocationStack::function)
            .map(|name| name.to_string())
            .collect();
        names.join(" < ")
    };
    nodes.filter(|node| node.shallow_size() > 0).map(functions).collect()
}

#[test]
fn blocks_have_the_stacks_that_dmd_knows() {
    let graph = saved(Some("--stacks=full --quiet"));
    let pages = stacks(&graph, "alloc::string::String");
    assert_eq!(pages.len(), 100);
    for stack in &pages {
        let at = |name: &str| stack.find(name).unwrap_or_else(|| panic!("{name}: {stack}"));
        assert!(at("make_page") < at("fill_pages") && at("fill_pages") < at("main"), "{stack}");
        assert!(!stack.contains("Dmd<"), "the allocator's own frames are left out: {stack}");
    }
    let index: Vec<_> = graph.nodes().filter(|node| node.shallow_size() >= 8000).collect();
    assert_eq!(index.len(), 1);
    let stack = index[0].allocation_stack().unwrap();
    assert!(
        stack
            .frames()
            .any(|frame| { frame.function().is_some_and(|name| name.to_string().contains("make_index")) })
    );
    // A value that is not on the heap has no stack.
    assert!(graph.root().allocation_stack().is_none());
}

#[test]
fn without_dmd_there_are_no_stacks() {
    let graph = saved(None);
    assert_eq!(graph.frame_count(), 0);
    assert!(graph.node_count() > 100);
}
