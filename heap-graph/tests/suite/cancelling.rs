//! Analyses show their progress, and stop when they are cancelled.

use std::fs;
use std::thread;

use heap_graph::census::census_watched;
use heap_graph::dominators::{
    SuspectOptions, individuals_watched, retained_by_leaves_watched, sizes_by_class_watched,
    sizes_by_field_watched, suspects_watched,
};
use heap_graph::paths::shortest_paths_watched;
use heap_graph::snapshot::{SnapshotError, SnapshotReadOptions, read_watched};
use heap_graph::{
    AnalysisProgress, Breakdown, DominatorTree, Graph, GraphBuilder, NodeId, NodeIndex, NodeParts,
};

use crate::golden;

/// A linked list of this number of nodes.
fn list(nodes: u64) -> Graph {
    let mut builder = GraphBuilder::new();
    let name = builder.text("Node").unwrap();
    for id in 1..=nodes {
        builder.node(NodeParts::new(NodeId(id), 8, name)).unwrap();
        if id < nodes {
            builder.edge(NodeId(id + 1), None).unwrap();
        }
    }
    builder.finish().unwrap()
}

/// Nodes of 300 types, each with three random edges. So each type retains more than the nodes that its nodes
/// dominate.
fn tangle(nodes: u64) -> Graph {
    let mut builder = GraphBuilder::new();
    let types: Vec<_> = (0..300).map(|number| builder.text(&format!("T{number}")).unwrap()).collect();
    let mut state = 7_u64;
    let mut random = |most: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % most
    };
    for id in 1..=nodes {
        let of = types[random(300) as usize];
        builder.node(NodeParts::new(NodeId(id), 8, of)).unwrap();
        let next = [id % nodes + 1, random(nodes) + 1, random(nodes) + 1];
        next.into_iter().for_each(|to| builder.edge(NodeId(to), None).unwrap());
    }
    builder.finish().unwrap()
}

/// Runs an analysis. Returns whether the analysis ended because it was cancelled.
type Run = fn(&DominatorTree<'_>, &AnalysisProgress) -> bool;

/// Each analysis, and the number of steps for each node.
const RUNS: &[(&str, Run, u64)] = &[
    ("census", |tree, progress| census_watched(tree.graph(), &Breakdown::default(), progress).is_err(), 1),
    (
        "paths",
        |tree, progress| {
            let target = tree.graph().nodes().last().unwrap().index();
            shortest_paths_watched(tree.graph(), NodeIndex::ROOT, &[target], 1, progress).is_err()
        },
        1,
    ),
    ("dominators", |tree, progress| DominatorTree::watched(tree.graph(), progress).is_err(), 2),
    (
        "individuals",
        |tree, progress| {
            individuals_watched(tree, &Breakdown::default(), |leaf| leaf == 1, 1, progress).is_err()
        },
        1,
    ),
    ("lists of dominated nodes", |tree, progress| tree.prepare_lists(progress).is_err(), 1),
    ("sizes by class", |tree, progress| sizes_by_class_watched(tree, progress).is_err(), 4),
    ("sizes by field", |tree, progress| sizes_by_field_watched(tree, progress).is_err(), 4),
    ("suspects", |tree, progress| suspects_watched(tree, &SuspectOptions::new(), progress).is_err(), 4),
    (
        "leaves",
        |tree, progress| retained_by_leaves_watched(tree, &Breakdown::default(), progress).is_err(),
        5,
    ),
];

#[test]
fn a_run_ends_soon_after_its_cancellation() {
    let graph = list(100_000);
    let tree = DominatorTree::new(&graph);
    for (name, run, rounds) in RUNS {
        let progress = AnalysisProgress::new();
        progress.cancel();
        assert!(run(&tree, &progress), "{name}");
        let (done, total) = progress.steps();
        assert!(done < 10_000, "{name}: {done} of {total}");

        let progress = AnalysisProgress::new();
        assert!(!run(&tree, &progress), "{name}");
        let (done, total) = progress.steps();
        assert_eq!(total, rounds * 100_000, "{name}");
        // The analyses do not visit the root and the target in each round.
        assert!(done <= total && total - done < 10_100, "{name}: {done} of {total}");
    }
}

#[test]
fn a_search_for_what_groups_retain_can_be_cancelled() {
    const NODES: u64 = 100_000;
    let graph = tangle(NODES);
    let tree = DominatorTree::new(&graph);
    tree.prepare_lists(&AnalysisProgress::new()).unwrap();
    let progress = AnalysisProgress::new();
    sizes_by_class_watched(&tree, &progress).unwrap();
    let (done, all) = progress.steps();
    assert!(done <= all && all - done < 10, "{done} of {all}");
    assert!(all > 6 * NODES, "two searches follow: {all}");
    // The analysis may end before this thread cancels it, so the test makes several attempts.
    for _ in 0..100 {
        let progress = AnalysisProgress::new();
        let result = thread::scope(|scope| {
            let run = scope.spawn(|| sizes_by_class_watched(&tree, &progress));
            // Waits for all steps before the first search.
            while progress.steps().0 <= 5 * NODES && !run.is_finished() {
                thread::yield_now();
            }
            progress.cancel();
            run.join().unwrap()
        });
        if result.is_err() {
            let (done, _) = progress.steps();
            assert!(5 * NODES < done && done < all, "{done} of {all}");
            return;
        }
    }
    panic!("never cancelled");
}

#[test]
fn a_reader_counts_the_bytes_of_a_file() {
    let path = golden::path("small-a.fxsnapshot");
    let progress = AnalysisProgress::new();
    let graph = read_watched(&path, &SnapshotReadOptions::new(), &progress).unwrap();
    assert!(graph.node_count() > 4_000);
    let bytes = fs::metadata(&path).unwrap().len();
    assert_eq!(progress.steps(), (bytes, bytes));

    let progress = AnalysisProgress::new();
    progress.cancel();
    let error = read_watched(&path, &SnapshotReadOptions::new(), &progress).unwrap_err();
    assert!(matches!(error, SnapshotError::Cancelled), "{error}");
    assert_eq!(progress.steps(), (0, bytes));
}
