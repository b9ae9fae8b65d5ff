//! Allocation stacks of a program that DMD records.

use std::ffi::OsStr;
use std::process::Command;

use heap_graph::{Graph, snapshot};
use serde_json::{Value, json};

/// The command of a program in the folder next to this test's folder, with these options of DMD. `$PROGRAM_RUNNER` is
/// the command of an emulator, if the tests are built for another processor.
fn victim(name: &str, dmd: Option<&str>) -> Command {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().with_file_name("examples").join(name);
    let runner = std::env::var("PROGRAM_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).env_remove("DMD").envs(dmd.map(|dmd| ("DMD", dmd)));
    command
}

fn saved(dmd: Option<&str>) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heap.fxsnapshot");
    assert!(victim("heap_graph_victim", dmd).arg(&path).status().unwrap().success());
    snapshot::read(&path).unwrap()
}

/// For each node of a type, the functions on its stack, joined. Leaves out nodes without bytes.
fn stacks(graph: &Graph, type_name: &str) -> Vec<String> {
    let nodes = graph.nodes().filter(|node| node.type_name() == type_name);
    let functions = |node: heap_graph::HeapNode<'_>| {
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

/// The output of the program `heap_graph_censuses`, by line.
fn censuses(dmd: Option<&str>) -> Vec<String> {
    let output = victim("heap_graph_censuses", dmd).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The reports of the stacks with this function, by class.
fn of_function(census: &str, function: &str) -> Vec<(String, Value)> {
    let census: Value = serde_json::from_str(census).unwrap();
    let stacks = census["@map"].as_array().unwrap();
    let is_asked = |stack: &Value| {
        stack.as_array().is_some_and(|frames| {
            frames.iter().any(|frame| frame[3].as_str().is_some_and(|name| name.contains(function)))
        })
    };
    let reports = stacks.iter().filter(|pair| is_asked(&pair[0])).map(|pair| &pair[1]);
    let counted = |report: &Value| report["count"] != 0;
    let mut classes: Vec<_> = reports
        .flat_map(|report| report.as_object().unwrap())
        .filter(|(_, report)| counted(report))
        .map(|(class, report)| (class.clone(), report.clone()))
        .collect();
    classes.sort_by(|a, b| a.0.cmp(&b.0));
    classes
}

#[test]
fn a_running_program_takes_censuses_by_stack_and_class() {
    let lines = censuses(Some("--mode=live --stacks=full --quiet"));
    let [all, reached] = &lines[..] else { panic!("{lines:?}") };
    // Blocks that no value measures are only in the census of all blocks.
    let counts = |classes: &[(String, Value)]| -> Vec<(String, u64)> {
        classes.iter().map(|(class, report)| (class.clone(), report["count"].as_u64().unwrap())).collect()
    };
    let expected = |counts: &[(&str, u64)]| -> Vec<(String, u64)> {
        counts.iter().map(|(class, count)| ((*class).to_owned(), *count)).collect()
    };
    assert_eq!(counts(&of_function(all, "make_foreign")), expected(&[("[Vec]", 1), ("[u64]", 7)]));
    assert!(of_function(reached, "make_foreign").is_empty());
    let pages = of_function(all, "make_page");
    assert_eq!(counts(&pages), expected(&[("Page", 10), ("[u32]", 10), ("other", 10)]));
    let bytes = pages[0].1["bytes"].as_u64().unwrap();
    assert!((480..=640).contains(&bytes), "usable bytes of 10 pages: {bytes}");
    let pages = of_function(reached, "make_page");
    assert_eq!(pages[0], ("Page".to_owned(), json!({"count": 10, "bytes": bytes})));
}

#[test]
fn a_census_of_blocks_needs_dmd() {
    let lines = censuses(None);
    assert!(lines[0].starts_with("no census of allocated blocks: DMD does not record"), "{}", lines[0]);
    assert!(lines[1].contains("noStack"), "the values have no stacks");
}
