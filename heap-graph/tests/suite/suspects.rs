//! Leak suspects, individuals, and the exact texts of errors.

use heap_graph::census::TreeOptions;
use heap_graph::dominators::{SuspectOptions, individuals, suspects};
use heap_graph::{Breakdown, CensusTree, DominatorTree, GraphBuilder, NodeId, NodeIndex, NodeParts, census};

use crate::golden;

#[test]
fn a_suspect_leads_to_where_it_accumulates() {
    let mut builder = GraphBuilder::new();
    let [roots, cache, table, entry, small] =
        ["roots", "Cache", "Table", "Entry", "Small"].map(|name| builder.text(name).unwrap());
    builder.node(NodeParts::new(NodeId(1), 0, roots)).unwrap();
    builder.edge(NodeId(2), None).unwrap();
    (200..300).for_each(|id| builder.edge(NodeId(id), None).unwrap());
    builder.node(NodeParts::new(NodeId(2), 10, cache)).unwrap();
    builder.edge(NodeId(3), None).unwrap();
    builder.node(NodeParts::new(NodeId(3), 90, table)).unwrap();
    (100..200).for_each(|id| builder.edge(NodeId(id), None).unwrap());
    for id in 100..200 {
        builder.node(NodeParts::new(NodeId(id), 5, entry)).unwrap();
    }
    for id in 200..300 {
        builder.node(NodeParts::new(NodeId(id), 4, small)).unwrap();
    }
    let graph = builder.finish().unwrap();
    let found = suspects(&DominatorTree::new(&graph), &SuspectOptions::new());
    let json: Vec<_> = found.iter().map(heap_graph::dominators::Suspect::to_json).collect();
    assert_eq!(
        json[0],
        r#"{"class":"Cache","nodes":[2],"retainedSize":600,"percent":60.00,"path":[{"nodeId":2,"class":"Cache","retainedSize":600,"children":1},{"nodeId":3,"class":"Table","retainedSize":590,"children":100}]}"#
    );
    // A single node does not retain much, but all nodes together do.
    assert_eq!((found[1].class.to_string().as_str(), found[1].nodes.len()), ("Small", 100));
    assert_eq!((found[1].retained_size, found.len()), (400, 2));
    assert!(suspects(&DominatorTree::new(&graph), &SuspectOptions::new().percent(61.0)).is_empty());
}

#[test]
fn the_nodes_behind_a_leaf_are_found() {
    let graph = golden::snapshot("small-a");
    let tree = DominatorTree::new(&graph);
    for (_, json) in Breakdown::PRESETS {
        let breakdown = Breakdown::parse(json).unwrap();
        if breakdown == Breakdown::Bucket {
            continue;
        }
        let report = census(&graph, &breakdown).unwrap();
        let shape = CensusTree::new(&report, &TreeOptions::new());
        let mut stack = vec![shape.root()];
        let mut total = 0;
        while let Some(node) = stack.pop() {
            if !node.leaves.is_empty() {
                let found =
                    individuals(&tree, &breakdown, |leaf| node.leaves.contains(&leaf), usize::MAX).unwrap();
                assert_eq!(found.len() as i128, node.count);
                assert_eq!(
                    found.iter().map(|node| i128::from(node.shallow_size())).sum::<i128>(),
                    node.bytes
                );
                assert!(
                    found.is_sorted_by_key(|node| { std::cmp::Reverse(tree.retained_size(node.index())) })
                );
                total += found.len();
            }
            stack.extend(shape.children(node));
        }
        assert_eq!(total, graph.node_count() - 1);
    }
    assert_eq!(tree.dominators_of(NodeIndex::ROOT).count(), 1);
}

#[test]
fn errors_name_message_field_and_byte() {
    let expected = include_str!("../golden/errors.txt");
    let mut text = String::new();
    for (name, _) in golden::entries(&golden::raw("handmade/verdicts.json")) {
        if let Err(error) = heap_graph::snapshot::read(golden::path(&format!("handmade/{name}.fxsnapshot"))) {
            text += &format!("{name}: {error}\n");
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(golden::path("errors.txt"), &text).unwrap();
        return;
    }
    assert_eq!(text, expected, "UPDATE_GOLDEN=1 rewrites it");
}
