//! Snapshots that this crate writes and reads again.

use heap_graph::graph::AllocationStack;
use heap_graph::snapshot::{SnapshotReadOptions, SnapshotWriteOptions, read_from, write};
use heap_graph::{Graph, GraphBuilder, NodeId, NodeParts};

use crate::golden::{self, SNAPSHOTS};

fn frames(stack: AllocationStack<'_>) -> Vec<impl PartialEq + std::fmt::Debug> {
    let frame = |frame: AllocationStack<'_>| {
        let names = (frame.source().into_owned(), frame.function().map(|name| name.into_owned()));
        (names, frame.line(), frame.column(), frame.is_system(), frame.is_self_hosted())
    };
    stack.frames().map(frame).collect()
}

pub(crate) fn assert_same(a: &Graph, b: &Graph, what: &str) {
    assert_eq!(a.creation_time(), b.creation_time(), "{what}");
    assert_eq!((a.node_count(), a.edge_count()), (b.node_count(), b.edge_count()), "{what}");
    for (a, b) in a.nodes().zip(b.nodes()) {
        assert_eq!((a.id(), a.shallow_size(), a.coarse_type()), (b.id(), b.shallow_size(), b.coarse_type()));
        assert_eq!((a.type_name(), a.class_name()), (b.type_name(), b.class_name()), "{what}");
        assert_eq!(a.script_file_name(), b.script_file_name(), "{what}");
        assert_eq!(a.descriptive_type_name(), b.descriptive_type_name(), "{what}");
        assert_eq!(a.allocation_stack().map(frames), b.allocation_stack().map(frames), "{what}");
        let edges = |node: heap_graph::HeapNode<'_>| -> Vec<_> {
            node.edges().map(|edge| (edge.referent.id(), edge.name.map(|name| name.into_owned()))).collect()
        };
        assert_eq!(edges(a), edges(b), "{what}");
    }
}

pub(crate) fn written(graph: &Graph) -> Graph {
    let file = write(graph, Vec::new(), &SnapshotWriteOptions::new()).unwrap();
    read_from(&file[..], &SnapshotReadOptions::new()).unwrap()
}

#[test]
fn what_is_written_is_read_again() {
    let handmade = golden::entries(&golden::raw("handmade/verdicts.json")).into_iter();
    let names = handmade.map(|(name, _)| format!("handmade/{name}")).chain(SNAPSHOTS.map(str::to_owned));
    let mut read = 0;
    for name in names {
        if let Ok(graph) = heap_graph::snapshot::read(golden::path(&format!("{name}.fxsnapshot"))) {
            assert_same(&graph, &written(&graph), &name);
            read += 1;
        }
    }
    assert_eq!(read, 48 + 3);
}

#[test]
fn stacks_deeper_than_a_reader_takes_lose_their_oldest_frames() {
    let mut builder = GraphBuilder::new();
    let text = builder.text("deep").unwrap();
    let mut stack = None;
    for line in 1..=100 {
        let parts = heap_graph::graph::FrameParts {
            parent: stack,
            source: text,
            line,
            column: 1,
            function: None,
            is_system: false,
            is_self_hosted: false,
        };
        stack = Some(builder.frame(parts).unwrap());
    }
    let parts = NodeParts { allocation_stack: stack, ..NodeParts::new(NodeId(1), 1, text) };
    builder.node(parts).unwrap();
    let graph = written(&builder.finish().unwrap());
    let stack = graph.root().allocation_stack().unwrap();
    assert_eq!(
        stack.frames().map(AllocationStack::line).collect::<Vec<_>>(),
        (11..=100).rev().collect::<Vec<_>>()
    );
}

/// Nodes whose stacks continue the stack of the previous node.
fn deep(nodes: u64) -> Vec<u8> {
    let mut builder = GraphBuilder::new();
    let text = builder.text("deep").unwrap();
    let mut stack = None;
    for node in 1..=nodes {
        for line in 1..=80 {
            let parts = heap_graph::graph::FrameParts {
                parent: stack,
                source: text,
                line,
                column: node as u32,
                function: None,
                is_system: false,
                is_self_hosted: false,
            };
            stack = Some(builder.frame(parts).unwrap());
        }
        let parts = NodeParts { allocation_stack: stack, ..NodeParts::new(NodeId(node), 1, text) };
        builder.node(parts).unwrap();
    }
    write(&builder.finish().unwrap(), Vec::new(), &SnapshotWriteOptions::new()).unwrap()
}

#[test]
fn stacks_without_end_are_refused() {
    let graph = read_from(&deep(125)[..], &SnapshotReadOptions::new()).unwrap();
    assert_eq!(graph.nodes().last().unwrap().allocation_stack().unwrap().frames().count(), 10_000);
    let error = read_from(&deep(126)[..], &SnapshotReadOptions::new()).unwrap_err().to_string();
    assert!(error.starts_with("message 126 (Node), field allocationStack, at unpacked byte "), "{error}");
    assert!(error.ends_with(": frames nest deeper than 10000"), "{error}");
}

#[test]
fn more_bytes_than_are_allowed_are_refused() {
    let path = golden::path("small-a.fxsnapshot");
    let error =
        heap_graph::snapshot::read_with(&path, &SnapshotReadOptions::new().max_bytes(10_000)).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("message ") && error.ends_with("reading on would exceed 10000 unpacked bytes"));
    heap_graph::snapshot::read_with(&path, &SnapshotReadOptions::new()).unwrap();
}

#[test]
fn a_node_takes_48_bytes_and_an_edge_8() {
    for name in SNAPSHOTS {
        let graph = golden::snapshot(name);
        let (flat, _) = graph.memory();
        assert!(flat <= 48 * graph.node_count() + 8 * graph.edge_count(), "{name}: {flat}");
    }
}
