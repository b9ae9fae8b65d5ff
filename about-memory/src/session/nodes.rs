//! Answers whose rows are nodes of a heap.

use core::cmp::Reverse;
use std::collections::HashSet;

use heap_graph::dominators::{
    MAX_INDIVIDUALS, SharedDominators, Suspect, SuspectOptions, individuals_watched, sizes_by_class_watched,
    suspects_watched,
};
use heap_graph::paths::{PathPart, PathTree};
use heap_graph::{AnalysisProgress, CensusTree, Graph, HeapNode, NodeId, NodeIndex};

use super::answer::{PathStep, QueryAnswer, SuspectClass, SuspectGroup};
use super::error::SessionError;
use super::group_id::group_id;
use super::query::GroupBy;

/// A search checks for cancellation each time it has searched this many nodes.
const LOOK: usize = 4096;

/// Returns the nodes of a graph in the order of their indices. After the computation is cancelled, one of the next
/// [`LOOK`] items is an error.
fn all<'a>(
    graph: &'a Graph,
    progress: &'a AnalysisProgress,
) -> impl Iterator<Item = Result<HeapNode<'a>, SessionError>> + 'a {
    graph.nodes().enumerate().map(|(place, node)| {
        let is_over = place % LOOK == 0 && progress.is_cancelled();
        if is_over { Err(SessionError::Cancelled) } else { Ok(node) }
    })
}

/// Returns the nodes whose name contains a text, and the nodes that dominate them.
pub(super) fn part(
    tree: &SharedDominators,
    filter: &str,
    progress: &AnalysisProgress,
) -> Result<QueryAnswer, SessionError> {
    let of_tree = tree.tree();
    let mut kept = vec![0_u64; tree.graph().node_count().div_ceil(64)];
    let mut keep = |node: NodeIndex| {
        let (word, bit) = (&mut kept[node.get() / 64], 1 << (node.get() % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    };
    let mut found = 0;
    for node in all(tree.graph(), progress) {
        let node = node?;
        if !of_tree.is_reachable(node.index()) || !node.title().contains(filter) {
            continue;
        }
        found += 1;
        // All dominators of a kept node are kept.
        let mut at = Some(node.index());
        while let Some(node) = at.filter(|node| keep(*node)) {
            at = of_tree.immediate_dominator(node).map(|above| above.index());
        }
    }
    Ok(QueryAnswer::Part { tree: tree.clone(), kept, found })
}

pub(super) fn classes(
    tree: &SharedDominators,
    filter: &str,
    progress: &AnalysisProgress,
) -> Result<QueryAnswer, SessionError> {
    let of_tree = tree.tree();
    let all =
        sizes_by_class_watched(&of_tree, progress)?.into_iter().filter(|class| class.class.contains(filter));
    let class = |class: heap_graph::dominators::ClassSizes<'_>| SuspectClass {
        name: class.class.to_string(),
        count: class.count,
        shallow: class.shallow_size,
        retained: class.retained_size,
    };
    Ok(QueryAnswer::Classes(all.map(class).collect()))
}

/// Returns the leaves that a group of a census counts.
pub(super) fn leaves(census: &CensusTree, group: u64) -> HashSet<u64> {
    let mut left = vec![(census.root(), 0)];
    while let Some((node, above)) = left.pop() {
        for child in census.children(node) {
            let id = group_id(child.name.as_ref(), above);
            if id == group {
                return child.leaves.iter().copied().collect();
            }
            left.push((child, id));
        }
    }
    HashSet::new()
}

pub(super) fn individuals(
    tree: &SharedDominators,
    by: &GroupBy,
    leaves: &HashSet<u64>,
    filter: &str,
    progress: &AnalysisProgress,
) -> Result<QueryAnswer, SessionError> {
    let of_tree = tree.tree();
    let is_wanted = |leaf| leaves.contains(&leaf);
    let mut all = individuals_watched(&of_tree, &by.breakdown(), is_wanted, usize::MAX, progress)?;
    if !filter.is_empty() {
        all.retain(|node| node.title().contains(filter));
    }
    let nodes = all.iter().take(MAX_INDIVIDUALS).map(|node| node.index()).collect();
    Ok(QueryAnswer::Nodes { nodes, found: all.len(), tree: tree.clone() })
}

/// Returns the nodes whose name contains the text, or whose id is the text: decimal, or hexadecimal after `0x`, also
/// after `@`.
pub(super) fn search(
    tree: &SharedDominators,
    text: &str,
    progress: &AnalysisProgress,
) -> Result<QueryAnswer, SessionError> {
    let of_tree = tree.tree();
    let id = text.strip_prefix("@").unwrap_or(text).trim();
    let id = match id.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => id.parse().ok(),
    };
    let mut nodes: Vec<NodeIndex> = Vec::new();
    for node in all(tree.graph(), progress) {
        let node = node?;
        let is_named = || !text.is_empty() && node.title().contains(text);
        if (id == Some(node.id().0) || is_named()) && of_tree.is_reachable(node.index()) {
            nodes.push(node.index());
        }
    }
    nodes.sort_by_cached_key(|node| Reverse(of_tree.retained_size(*node)));
    let found = nodes.len();
    nodes.truncate(MAX_INDIVIDUALS);
    Ok(QueryAnswer::Nodes { tree: tree.clone(), nodes, found })
}

pub(super) fn all_suspects(
    tree: &SharedDominators,
    progress: &AnalysisProgress,
) -> Result<QueryAnswer, SessionError> {
    let of_tree = tree.tree();
    let group = |suspect: Suspect| {
        let all = suspect.nodes.iter().filter_map(|id| tree.graph().find(*id));
        let mut nodes: Vec<_> = all.map(|node| node.index()).collect();
        let shallow = nodes.iter().map(|node| u128::from(tree.graph().node(*node).shallow_size())).sum();
        nodes.sort_by_cached_key(|node| Reverse(of_tree.retained_size(*node)));
        let count = nodes.len();
        nodes.truncate(MAX_INDIVIDUALS);
        let (class, retained) = (suspect.class.to_string(), suspect.retained_size);
        SuspectGroup { class, count, shallow, retained, nodes }
    };
    let suspects = suspects_watched(&of_tree, &SuspectOptions::new(), progress)?;
    let groups = suspects.into_iter().map(group).collect();
    Ok(QueryAnswer::Suspects { tree: tree.clone(), groups })
}

pub(super) fn find(graph: &Graph, node: u64) -> Result<HeapNode<'_>, SessionError> {
    graph.find(NodeId(node)).ok_or(SessionError::NoNode(node))
}

pub(super) fn paths(
    graph: &Graph,
    walk: &PathTree,
    target: HeapNode<'_>,
    max: usize,
) -> Result<QueryAnswer, SessionError> {
    let title = |node: HeapNode<'_>| node.title().to_string();
    let name = |id: NodeId| graph.find(id).map(title).unwrap_or_default();
    let paths = walk.paths(graph, target.index(), max).into_iter().map(|path| {
        let step = |part: PathPart<'_>| PathStep {
            node: part.predecessor.0,
            name: name(part.predecessor),
            edge: part.edge.map(|edge| edge.to_string()),
        };
        let end = PathStep { node: target.id().0, name: title(target), edge: None };
        path.into_iter().map(step).chain([end]).collect()
    });
    Ok(QueryAnswer::Paths(paths.collect()))
}
