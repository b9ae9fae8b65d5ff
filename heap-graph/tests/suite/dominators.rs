//! Compares dominators and retained sizes with Firefox's answers and with their definition.

use heap_graph::dominators::FetchOptions;
use heap_graph::{
    AnalysisProgress, DominatorTree, Graph, GraphBuilder, HeapNode, NodeId, NodeIndex, NodeParts,
};
use serde_json::Value;

use crate::golden::{self, SNAPSHOTS};

#[test]
fn every_dominator_and_retained_size_of_firefox_is_ours() {
    for name in SNAPSHOTS {
        let graph = golden::snapshot(name);
        let tree = DominatorTree::new(&graph);
        let text = golden::text(&format!("{name}.dominators.tsv.gz"));
        let mut nodes = 1;
        for line in text.lines().skip(1) {
            let mut numbers = line.split('\t').map(|number| number.parse::<u64>().unwrap());
            let mut next = || numbers.next().unwrap();
            let node = graph.find(NodeId(next())).unwrap().index();
            assert_eq!(
                tree.immediate_dominator(node).map(|node| node.id().0),
                Some(next()),
                "{name}: {line}"
            );
            assert_eq!(tree.retained_size(node), Some(next().into()), "{name}: {line}");
            nodes += 1;
        }
        assert_eq!(nodes, graph.nodes().filter(|node| tree.is_reachable(node.index())).count());
    }
}

/// The largest number of nodes for which the test compares the order of equal nodes. Firefox's sort of longer lists is
/// not stable.
const STABLE: usize = 15;

fn compare(tree: &DominatorTree<'_>, expected: &Value) {
    let node = tree.graph().find(NodeId(expected["id"].as_u64().unwrap())).unwrap().index();
    let size = |id: u64| tree.retained_size(tree.graph().find(NodeId(id)).unwrap().index());
    assert_eq!(expected["retained"].as_u64().map(u128::from), tree.retained_size(node));
    let ours: Vec<_> = tree.immediately_dominated(node).map(|child| child.id().0).collect();
    if let Some(count) = expected["n"].as_u64() {
        assert_eq!(count, ours.len() as u64);
    }
    let Some(top) = expected.get("top").or_else(|| expected.get("children")) else { return };
    let top = top.as_array().unwrap();
    let theirs: Vec<_> = top.iter().map(|child| child["id"].as_u64().unwrap()).collect();
    if ours.len() <= STABLE {
        assert_eq!(ours[..theirs.len()], theirs[..]);
    }
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(size(*ours), size(*theirs));
    }
    top.iter().for_each(|child| compare(tree, child));
}

#[test]
fn the_top_of_the_tree_is_firefox_s() {
    for name in SNAPSHOTS {
        let graph = golden::snapshot(name);
        let answers = golden::answers(name);
        let dominators = golden::object(answers.get("dominators"));
        let tree = DominatorTree::new(&graph);
        assert_eq!(dominators["root"].as_u64(), Some(graph.root().id().0));
        assert_eq!(tree.immediate_dominator(NodeIndex::ROOT).map(HeapNode::id), None);
        compare(&tree, &dominators["tree"]);
    }
}

#[test]
fn handmade_trees_are_firefox_s() {
    let mut trees = 0;
    for (name, verdict) in golden::entries(&golden::raw("handmade/verdicts.json")) {
        // JavaScript rounds large numbers, and Firefox's sums wrap.
        if name == "size-2to64-minus-1" || name == "lone-surrogate-type-name" {
            continue;
        }
        let verdict = golden::object(&verdict);
        let Some(expected) = verdict.get("dominators") else { continue };
        let graph = golden::snapshot(&format!("handmade/{name}"));
        compare(&DominatorTree::new(&graph), expected);
        trees += 1;
    }
    assert_eq!(trees, 46);
}

#[test]
fn a_front_end_is_given_what_firefox_gives_it() {
    fn compare(ours: &Value, theirs: &Value) {
        for key in ["retainedSize", "moreChildrenAvailable"] {
            assert_eq!(ours[key], theirs[key]);
        }
        let (Some(ours), Some(theirs)) = (ours["children"].as_array(), theirs["children"].as_array()) else {
            assert_eq!(ours.get("children"), theirs.get("children"));
            return;
        };
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            // Equal nodes may be in another order.
            if ours["nodeId"] == theirs["nodeId"] {
                assert_eq!(ours["label"], theirs["label"]);
                assert_eq!(ours["parentId"], theirs["parentId"]);
                assert_eq!(ours["shallowSize"], theirs["shallowSize"]);
                compare(ours, theirs);
            }
            assert_eq!(ours["retainedSize"], theirs["retainedSize"]);
        }
    }
    for name in SNAPSHOTS {
        let graph = golden::snapshot(name);
        let answers = golden::answers(name);
        let theirs: Value = serde_json::from_str(answers.get("dominator_tree_node").get()).unwrap();
        let tree = DominatorTree::new(&graph);
        let ours = tree.partial(NodeIndex::ROOT, &FetchOptions::default()).unwrap();
        let ours: Value = serde_json::from_str(&ours.to_json()).unwrap();
        assert_eq!(ours["label"], theirs["label"]);
        compare(&ours, &theirs);
    }
}

#[test]
fn more_of_a_list_is_fetched_from_any_place() {
    let graph = golden::snapshot("small-a");
    let tree = DominatorTree::new(&graph);
    let all: Vec<_> = tree.immediately_dominated(NodeIndex::ROOT).map(HeapNode::id).collect();
    let options = FetchOptions::default();
    let some = tree.fetch(NodeIndex::ROOT, 15, 50, &options).unwrap();
    assert!(some.more_children_available);
    assert_eq!(some.nodes.iter().map(|node| node.node_id).collect::<Vec<_>>(), all[15..65]);
    let rest = tree.fetch(NodeIndex::ROOT, all.len() - 7, 50, &options).unwrap();
    assert!(!rest.more_children_available);
    assert_eq!(rest.nodes.len(), 7);
    assert_eq!(rest.path, [graph.root().id()]);
}

#[test]
fn retained_sizes_do_not_wrap() {
    let graph = golden::snapshot("handmade/size-2to64-minus-1");
    let tree = DominatorTree::new(&graph);
    assert_eq!(tree.retained_size(NodeIndex::ROOT), Some(u128::from(u64::MAX) + 16));
}

/// The number of steps for each node: without a walk, and with a walk.
const ROUNDS: [usize; 2] = [2, 7];

/// Computes the tree, and checks whether the computation needed a walk.
fn tree_of(graph: &Graph, needs_walk: bool) -> DominatorTree<'_> {
    let progress = AnalysisProgress::new();
    let tree = DominatorTree::watched(graph, &progress).unwrap();
    let visits = (graph.node_count() * ROUNDS[usize::from(needs_walk)]) as u64;
    assert!(matches!(progress.steps(), (done, total) if total == visits && total - done < 10_000));
    tree
}

/// In the walk's tree, each leaf is below the whole chain, but only the root dominates it. Simple climbing would take
/// 10,000,000,000 steps.
#[test]
fn a_long_chain_to_many_leaves_is_no_square() {
    const MANY: u64 = 100_000;
    const OTHER: u64 = 2 * MANY + 1;
    let forwards: Vec<u64> = (1..=OTHER).collect();
    let backwards: Vec<u64> = (1..=OTHER).rev().collect();
    // The root leads to the leaves, or only to another node that leads to the leaves.
    for (order, has_leaves, needs_walk) in
        [(&forwards, true, false), (&backwards, true, true), (&forwards, false, true)]
    {
        let mut builder = GraphBuilder::new();
        let name = builder.text("Node").unwrap();
        let leaves = || MANY + 1..=2 * MANY;
        for id in [0].iter().chain(order) {
            builder.node(NodeParts::new(NodeId(*id), 1, name)).unwrap();
            let edges: Vec<u64> = match *id {
                0 if has_leaves => leaves().chain([OTHER, 1]).collect(),
                0 => vec![OTHER, 1],
                MANY | OTHER => leaves().collect(),
                id if id < MANY => vec![id + 1],
                _ => Vec::new(),
            };
            edges.into_iter().for_each(|to| builder.edge(NodeId(to), None).unwrap());
        }
        let graph = builder.finish().unwrap();
        let tree = tree_of(&graph, needs_walk);
        for node in graph.nodes().skip(1) {
            let id = node.id().0;
            let expected = if id <= MANY { id - 1 } else { 0 };
            assert_eq!(tree.immediate_dominator(node.index()).map(|node| node.id().0), Some(expected));
        }
        assert_eq!(tree.retained_size(graph.find(NodeId(1)).unwrap().index()), Some(MANY.into()));
    }
}

/// Dominators by the algorithm of Keith Cooper, Timothy Harvey and Ken Kennedy (A Simple, Fast Dominance Algorithm,
/// 2001). The function shares no code with the crate. `None` for unreachable nodes; the root's dominator is the root
/// itself.
fn by_intersection(edges: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut postorder = Vec::new();
    let mut numbers = vec![None; edges.len()];
    let mut met = vec![false; edges.len()];
    let mut stack = vec![(0, 0)];
    met[0] = true;
    while let Some((node, next)) = stack.last_mut() {
        let Some(to) = edges[*node].get(*next) else {
            numbers[*node] = Some(postorder.len());
            postorder.push(*node);
            stack.pop();
            continue;
        };
        *next += 1;
        if !std::mem::replace(&mut met[*to], true) {
            stack.push((*to, 0));
        }
    }
    let mut before = vec![Vec::new(); edges.len()];
    for node in &postorder {
        edges[*node].iter().for_each(|to| before[*to].push(*node));
    }
    let mut dominators = vec![None; edges.len()];
    dominators[0] = Some(0);
    let mut changed = true;
    while changed {
        changed = false;
        for node in postorder.iter().rev().filter(|node| **node != 0) {
            let known = before[*node].iter().copied().filter(|other| dominators[*other].is_some());
            let dominator = known.reduce(|mut one, mut other| {
                while one != other {
                    let lower = if numbers[one] < numbers[other] { &mut one } else { &mut other };
                    *lower = dominators[*lower].unwrap();
                }
                one
            });
            changed |= dominators[*node] != dominator;
            dominators[*node] = dominator;
        }
    }
    dominators
}

/// A generator of the same numbers in each run.
fn random() -> impl FnMut(usize) -> usize {
    let mut random = 88_172_645_463_325_252_u64;
    move |bound| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize % bound
    }
}

/// Compares dominators and retained sizes. Returns the number of reachable nodes, and the number of reachable nodes
/// that the root does not immediately dominate.
fn compare_by_intersection(edges: &[Vec<usize>], needs_walk: bool) -> (usize, usize) {
    let mut builder = GraphBuilder::new();
    let name = builder.text("Node").unwrap();
    for (node, to) in edges.iter().enumerate() {
        builder.node(NodeParts::new(NodeId(node as u64), 1 + node as u64 % 7, name)).unwrap();
        to.iter().for_each(|to| builder.edge(NodeId(*to as u64), None).unwrap());
    }
    let graph = builder.finish().unwrap();
    let tree = tree_of(&graph, needs_walk);
    let expected = by_intersection(edges);
    let mut deep = 0;
    for (node, dominator) in graph.nodes().zip(&expected) {
        assert_eq!(tree.is_reachable(node.index()), dominator.is_some());
        let dominator = dominator.filter(|_| node.index() != NodeIndex::ROOT);
        let own = tree.immediate_dominator(node.index()).map(|own| own.index().get());
        assert_eq!(own, dominator, "{:?}", node.id());
        let below: u128 = tree
            .immediately_dominated(node.index())
            .map(|own| tree.retained_size(own.index()).unwrap())
            .sum();
        let retained = expected[node.index().get()].map(|_| u128::from(node.shallow_size()) + below);
        assert_eq!(tree.retained_size(node.index()), retained);
        deep += usize::from(dominator.is_some_and(|dominator| dominator != 0));
    }
    (expected.iter().flatten().count(), deep)
}

/// The nodes are in any order, and do not fit in one region of the algorithm.
#[test]
fn dominators_of_large_graphs_in_any_order_are_right() {
    const NODES: usize = 20_000;
    let mut below = random();
    // The position of each node in the file. The root stays first.
    let mut places: Vec<usize> = (0..NODES).collect();
    (2..NODES).for_each(|place| places.swap(place, 1 + below(place)));
    let mut edges = vec![Vec::new(); NODES];
    for node in 1..NODES {
        // The edges make long and short paths, and leave some nodes unreachable.
        let near = node - 1 - below(node.min(30));
        if below(50) != 0 {
            edges[places[near]].push(places[node]);
        }
        if below(4) == 0 {
            edges[places[below(NODES)]].push(places[node]);
        }
        if below(8) == 0 {
            edges[places[node]].push(places[below(node + 1)]);
        }
    }
    let (reached, deep) = compare_by_intersection(&edges, true);
    assert!(
        (NODES / 2..NODES).contains(&reached) && deep > NODES / 10,
        "{reached} reached, {deep} not below the root"
    );
}

/// The nodes are in the order of a walk, and do not all fit in the top part of the tree, which the algorithm treats
/// separately. The root of the first graph has few edges, and the root of the second graph has many.
#[test]
fn dominators_of_large_graphs_in_the_order_of_a_walk_are_right() {
    const NODES: usize = 120_000;
    for below_root in [3, 50_000] {
        let mut below = random();
        let mut edges = vec![Vec::new(); NODES];
        for node in 1..NODES {
            let (near, far) = (node - 1 - below(node.min(20)), node / 3);
            let first = match below(10) {
                _ if node <= below_root => 0,
                0 => near,
                _ => far,
            };
            edges[first].push(node);
            // Adds edges from nearby nodes, and a few edges from any node, including later nodes. Each node also has
            // the edge from `first`.
            for (times, from) in [(4, near), (9, node - 1 - below(node)), (40, below(NODES))] {
                if below(times) == 0 {
                    edges[from.max(first)].push(node);
                }
            }
        }
        let (reached, deep) = compare_by_intersection(&edges, false);
        assert!(reached == NODES && deep > NODES / 10, "{reached} reached, {deep} not below the root");
    }
}
