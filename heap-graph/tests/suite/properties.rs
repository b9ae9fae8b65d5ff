//! Compares dominators, retained sets and paths of random graphs with their definitions.

use heap_graph::census::TreeOptions;
use heap_graph::dominators::{RetainedSet, retained_by_leaves, sizes_by_class, sizes_by_field};
use heap_graph::paths::{PathTree, k_shortest_paths};
use heap_graph::{
    AnalysisProgress, Breakdown, CensusTree, DominatorTree, Graph, GraphBuilder, HeapNode, NodeId, NodeIndex,
    NodeParts, census, shortest_paths,
};
use proptest::prelude::*;

/// A graph of this number of nodes with these edges. Sizes are powers of two, so each sum identifies its nodes.
fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
    let mut builder = GraphBuilder::new();
    let types = ["A", "B", "C"].map(|name| builder.text(name).unwrap());
    let names = ["edge", "other"].map(|name| builder.text(name).unwrap());
    for node in 0..nodes {
        builder.node(NodeParts::new(NodeId(node as u64 * 8), 1 << node, types[node % 3])).unwrap();
        for (_, to) in edges.iter().filter(|(from, _)| *from == node) {
            builder.edge(NodeId(*to as u64 * 8), Some(names[(node + to) % 2])).unwrap();
        }
    }
    builder.finish().unwrap()
}

fn graphs() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
    (1_usize..24)
        .prop_flat_map(|nodes| (Just(nodes), proptest::collection::vec((0..nodes, 0..nodes), 0..nodes * 3)))
}

/// A chain of 30 nodes. The last node of the chain leads to 30 leaves. The root's edges lead first to the leaves and
/// then to the chain, so a walk that takes the last edge first reaches the leaves through the chain. A few random edges
/// are added.
fn deep_graphs() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
    let chain = (1..30).map(|node| (node, node + 1));
    let leaves = (31..61).flat_map(|leaf| [(0, leaf), (30, leaf)]);
    let edges: Vec<_> = leaves.chain([(0, 1)]).chain(chain).collect();
    proptest::collection::vec((0_usize..61, 0_usize..61), 0..8).prop_map(move |more| {
        let mut all = edges.clone();
        all.splice(0..0, more);
        (61, all)
    })
}

/// Graphs in which each node comes after a node with an edge to it, as in a file that a walk has written.
fn walked_graphs() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
    (1_usize..40).prop_flat_map(|nodes| {
        let any = proptest::collection::vec((0..nodes, 0..nodes), 0..nodes);
        let firsts = proptest::collection::vec(0..nodes, nodes - 1);
        (any, firsts).prop_map(move |(mut edges, firsts)| {
            edges.extend((1..nodes).zip(firsts).map(|(node, first)| (first % node, node)));
            (nodes, edges)
        })
    })
}

/// The same graph, with all nodes except the root in reverse order.
fn backwards(nodes: usize, edges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let place = |node: usize| if node == 0 { 0 } else { nodes - node };
    edges.iter().map(|(from, to)| (place(*from), place(*to))).collect()
}

/// The nodes that the root reaches without passing these nodes.
fn reached(nodes: usize, edges: &[(usize, usize)], without: &[usize]) -> Vec<bool> {
    let mut reached = vec![false; nodes];
    let mut stack = vec![0];
    while let Some(node) = stack.pop() {
        if !without.contains(&node) && !reached[node] {
            reached[node] = true;
            stack.extend(edges.iter().filter(|(from, _)| *from == node).map(|(_, to)| *to));
        }
    }
    reached
}

fn index(graph: &Graph, node: usize) -> NodeIndex {
    graph.find(NodeId(node as u64 * 8)).unwrap().index()
}

fn check_dominators(nodes: usize, edges: &[(usize, usize)]) -> Result<(), TestCaseError> {
    let graph = graph(nodes, edges);
    let tree = DominatorTree::new(&graph);
    let all = reached(nodes, edges, &[]);
    let without: Vec<_> = (0..nodes).map(|node| reached(nodes, edges, &[node])).collect();
    for node in 0..nodes {
        let place = index(&graph, node);
        prop_assert_eq!(tree.is_reachable(place), all[node]);
        // A node dominates all nodes that the root does not reach without it.
        let own = (0..nodes).filter(|other| all[*other] && !without[node][*other]);
        let size: u128 = own.map(|other| 1 << other).sum();
        prop_assert_eq!(tree.retained_size(place), all[node].then_some(size));
        // The immediate dominator is the dominator that all other dominators dominate.
        let dominators: Vec<_> =
            (0..nodes).filter(|d| *d != node && all[node] && !without[*d][node]).collect();
        let immediate = dominators.iter().find(|d| dominators.iter().all(|o| o == *d || !without[*o][**d]));
        prop_assert_eq!(tree.immediate_dominator(place).map(|d| d.index().get()), immediate.copied());
        prop_assert_eq!(
            tree.retained_by(place).len(),
            if all[node] { size.count_ones() as usize } else { 1 }
        );
    }
    Ok(())
}

/// The sum of the nodes that the root does not reach without these nodes. Sizes are powers of two, so the sum
/// identifies the nodes.
fn cut_off(nodes: usize, edges: &[(usize, usize)], group: &[usize]) -> u128 {
    let (all, without) = (reached(nodes, edges, &[]), reached(nodes, edges, group));
    (0..nodes).filter(|node| all[*node] && !without[*node]).map(|node| 1 << node).sum()
}

/// The number of cases; larger under `./test thorough`.
fn cases() -> u32 {
    if std::env::var_os("THOROUGH").is_some() { 3_000 } else { 300 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn dominators_are_what_cuts_nodes_off((nodes, edges) in graphs()) {
        check_dominators(nodes, &edges)?;
    }

    #[test]
    fn so_they_are_where_climbing_is_long((nodes, edges) in deep_graphs()) {
        check_dominators(nodes, &edges)?;
        check_dominators(nodes, &backwards(nodes, &edges))?;
    }

    #[test]
    fn so_they_are_in_the_order_of_a_walk((nodes, edges) in walked_graphs()) {
        check_dominators(nodes, &edges)?;
        check_dominators(nodes, &backwards(nodes, &edges))?;
    }

    #[test]
    fn a_retained_set_is_what_its_selection_cuts_off(
        (nodes, edges) in graphs(),
        picks in proptest::collection::vec(0_usize..24, 0..5),
    ) {
        let graph = graph(nodes, &edges);
        let picks: Vec<_> = picks.into_iter().map(|pick| pick % nodes).collect();
        let expected = cut_off(nodes, &edges, &picks);
        let picks: Vec<_> = picks.into_iter().map(|pick| index(&graph, pick)).collect();
        let set = RetainedSet::new(&graph, &picks);
        prop_assert_eq!(set.bytes, expected);
        prop_assert_eq!(set.nodes.len(), expected.count_ones() as usize);
    }

    #[test]
    fn a_class_retains_what_its_nodes_cut_off((nodes, edges) in graphs()) {
        let graph = graph(nodes, &edges);
        let tree = DominatorTree::new(&graph);
        for class in sizes_by_class(&tree) {
            let members = graph.nodes().skip(1).filter(|node| node.type_name() == class.class);
            let members: Vec<_> = members.map(|node| node.id().0 as usize / 8).collect();
            prop_assert_eq!(class.retained_size, cut_off(nodes, &edges, &members));
        }
    }

    #[test]
    fn a_field_retains_what_the_nodes_that_it_holds_cut_off((nodes, edges) in graphs()) {
        let graph = graph(nodes, &edges);
        let tree = DominatorTree::new(&graph);
        let all = sizes_by_field(&tree);
        let mut counted = 0;
        for field in &all {
            let holds = |dominator: &HeapNode<'_>, node: &HeapNode<'_>| {
                let direct = dominator.edges().find(|edge| edge.referent.index() == node.index());
                dominator.type_name() == field.holder && direct.and_then(|edge| edge.name) == field.field
            };
            let held = graph.nodes().filter(|node| {
                tree.immediate_dominator(node.index()).is_some_and(|dominator| holds(&dominator, node))
            });
            let held: Vec<_> = held.map(|node| node.id().0 as usize / 8).collect();
            let expected = (cut_off(nodes, &edges, &held), held.len() as u64);
            prop_assert_eq!((field.retained_size, field.count), expected);
            counted += field.count;
        }
        let reachable = graph.nodes().filter(|node| tree.is_reachable(node.index())).count();
        prop_assert_eq!(counted, reachable as u64 - 1);
        prop_assert!(all.is_sorted_by(|one, other| one.retained_size >= other.retained_size));
    }

    #[test]
    fn a_leaf_retains_what_its_nodes_cut_off((nodes, edges) in graphs()) {
        let graph = graph(nodes, &edges);
        let tree = DominatorTree::new(&graph);
        for breakdown in ["internalType", "count"].map(|name| Breakdown::preset(name).unwrap()) {
            // An array counts each node twice.
            let twice = Breakdown::All(vec![breakdown.clone(), Breakdown::preset("internalType").unwrap()]);
            for breakdown in [breakdown, twice] {
                let retained = retained_by_leaves(&tree, &breakdown).unwrap();
                let report = census(&graph, &breakdown).unwrap();
                let report = CensusTree::new(&report, &TreeOptions::default());
                let mut left = vec![report.root()];
                while let Some(node) = left.pop() {
                    left.extend(report.children(node));
                    let [leaf] = node.leaves.iter().copied().collect::<Vec<_>>()[..] else { continue };
                    // Sizes are powers of two, so the sum identifies the nodes.
                    let counted = graph.nodes().filter(|counted| node.bytes >> counted.index().get() & 1 == 1);
                    let counted: Vec<_> = counted.map(|node| node.id().0 as usize / 8).collect();
                    prop_assert_eq!(retained[leaf as usize], cut_off(nodes, &edges, &counted));
                }
            }
        }
    }

    #[test]
    fn the_shortest_paths_are_the_shortest((nodes, edges) in graphs(), target in 0_usize..24) {
        let target = target % nodes;
        let graph = graph(nodes, &edges);
        let mut expected = Vec::new();
        simple_paths(&edges, &mut vec![0], target, &mut expected);
        expected.sort_by_key(Vec::len);
        let place = index(&graph, target);
        let found = k_shortest_paths(&graph, NodeIndex::ROOT, place, 6, 10_000_000);
        let lengths: Vec<_> = expected.iter().take(6).map(|path| path.len() - 1).collect();
        prop_assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), lengths.clone());
        for path in &found {
            let mut path: Vec<_> = path.iter().map(|part| part.predecessor.0 as usize / 8).collect();
            path.push(target);
            prop_assert!(expected.contains(&path));
        }
        if target != 0 {
            let theirs = shortest_paths(&graph, NodeIndex::ROOT, &[place], 1);
            prop_assert_eq!(theirs.paths[0].1.first().map(Vec::len), lengths.first().copied());
        }
    }

    /// The graphs may have unreachable nodes, and edges back to the root. With such an edge, the walk takes the root's
/// edges twice.
    #[test]
    fn a_walk_that_is_kept_has_the_same_paths((nodes, edges) in graphs(), max in 0_usize..8) {
        let graph = graph(nodes, &edges);
        let tree = PathTree::watched(&graph, &AnalysisProgress::new()).unwrap();
        for node in graph.nodes() {
            let expected = shortest_paths(&graph, NodeIndex::ROOT, &[node.index()], max);
            prop_assert_eq!(&tree.paths(&graph, node.index(), max), &expected.paths[0].1);
        }
    }

    #[test]
    fn a_graph_is_read_as_it_was_written((nodes, edges) in graphs()) {
        let graph = graph(nodes, &edges);
        crate::write::assert_same(&graph, &crate::write::written(&graph), "random");
    }

    #[test]
    fn a_census_counts_what_the_walk_reaches((nodes, edges) in graphs()) {
        let graph = graph(nodes, &edges);
        let all = reached(nodes, &edges, &[]);
        let root_is_reached = edges.iter().any(|(from, to)| *to == 0 && all[*from]);
        let bytes: u128 = (0..nodes).filter(|node| all[*node] && (*node > 0 || root_is_reached)).map(|node| 1 << node).sum();
        let report = census(&graph, &Breakdown::preset("count").unwrap()).unwrap().to_json();
        prop_assert_eq!(report, format!("{{\"count\":{},\"bytes\":{bytes}}}", bytes.count_ones()));
    }
}

/// Like [`graph`], with many nodes of one byte each.
fn large_graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
    let mut builder = GraphBuilder::new();
    let type_name = builder.text("A").unwrap();
    for node in 0..nodes {
        builder.node(NodeParts::new(NodeId(node as u64 * 8), 1, type_name)).unwrap();
        for (_, to) in edges.iter().filter(|(from, _)| *from == node) {
            builder.edge(NodeId(*to as u64 * 8), None).unwrap();
        }
    }
    builder.finish().unwrap()
}

proptest! {
    #[test]
    fn a_census_of_many_nodes_counts_what_a_walk_reaches(
        nodes in 60_usize..300,
        ends in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..600),
    ) {
        // A chain back and forth through a part of the graph makes many nodes reachable.
        let edges: Vec<_> = (0..nodes / 2)
            .map(|node| (node * 37 % nodes, (node + 1) * 37 % nodes))
            .chain(ends.iter().map(|(from, to)| (from.index(nodes), to.index(nodes))))
            .collect();
        let graph = large_graph(nodes, &edges);
        let all = reached(nodes, &edges, &[]);
        let mut is_counted = vec![false; nodes];
        edges.iter().filter(|(from, _)| all[*from]).for_each(|(_, to)| is_counted[*to] = true);
        let count = is_counted.iter().filter(|is_counted| **is_counted).count();
        let report = census(&graph, &Breakdown::preset("count").unwrap()).unwrap().to_json();
        prop_assert_eq!(report, format!("{{\"count\":{count},\"bytes\":{count}}}"));
        // A census with a bucket visits nodes in another order.
        let bucket = census(&graph, &Breakdown::Bucket).unwrap();
        prop_assert!(matches!(bucket, heap_graph::CensusReport::Bucket(ids) if ids.len() == count));
    }
}

/// All paths from the end of `path` to the target that visit no node twice.
fn simple_paths(edges: &[(usize, usize)], path: &mut Vec<usize>, target: usize, found: &mut Vec<Vec<usize>>) {
    if found.len() > 20_000 {
        return;
    }
    let last = path[path.len() - 1];
    let mut next: Vec<_> = edges.iter().filter(|(from, _)| *from == last).map(|(_, to)| *to).collect();
    next.sort_unstable();
    next.dedup();
    for to in next {
        if path.contains(&to) {
            continue;
        }
        path.push(to);
        if to == target {
            found.push(path.clone());
        } else {
            simple_paths(edges, path, target, found);
        }
        path.pop();
    }
}
