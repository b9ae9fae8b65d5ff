//! The nodes that several nodes together keep alive: the nodes of a class, or any selection.

use hashbrown::HashMap;

use super::DominatorTree;
use super::NOT_CANCELLED;
use super::group_retained::retained_by_each;
use crate::census::{Breakdown, CensusError, CensusReport, census_watched};
use crate::graph::{Graph, GraphText, HeapNode, NodeId, NodeIndex};
use crate::progress::{AnalysisProgress, CancelledError};
use crate::walk::BreadthFirst;

/// The sizes of the nodes of one class.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClassSizes<'a> {
    /// The class; for nodes without a class, their type.
    pub class: GraphText<'a>,
    /// The number of nodes.
    pub count: u64,
    /// The bytes of the nodes themselves.
    pub shallow_size: u128,
    /// The bytes of all nodes that only nodes of the class keep alive, each byte once.
    pub retained_size: u128,
}

/// The sizes by class, ordered by retained size, the largest first. Classes with equal retained sizes are in the order
/// of the graph's kinds.
///
/// The retained sizes of different classes overlap, so their sum may exceed the heap. The root does not count.
pub fn sizes_by_class<'a>(tree: &DominatorTree<'a>) -> Vec<ClassSizes<'a>> {
    sizes_by_class_watched(tree, &AnalysisProgress::new()).expect(NOT_CANCELLED)
}

/// [`sizes_by_class`] with an [`AnalysisProgress`], which shows the progress and can cancel the analysis.
///
/// # Errors
///
/// Returns a [`CancelledError`] if the analysis was cancelled.
pub fn sizes_by_class_watched<'a>(
    tree: &DominatorTree<'a>,
    progress: &AnalysisProgress,
) -> Result<Vec<ClassSizes<'a>>, CancelledError> {
    let graph = tree.graph();
    let mut places = HashMap::new();
    let mut classes: Vec<ClassSizes<'a>> = Vec::new();
    let of_kind: Vec<usize> = graph
        .kinds()
        .iter()
        .map(|kind| {
            let name = kind.class_name.unwrap_or(kind.type_name);
            *places.entry(name).or_insert_with(|| {
                classes.push(ClassSizes {
                    class: graph.text(name),
                    count: 0,
                    shallow_size: 0,
                    retained_size: 0,
                });
                classes.len() - 1
            })
        })
        .collect();
    let class_of = |node: u32| of_kind[graph.kinds_of()[node as usize] as usize];
    for node in graph.nodes().skip(1).filter(|node| tree.is_reachable(node.index())) {
        let class = &mut classes[class_of(node.index().0)];
        class.count += 1;
        class.shallow_size += u128::from(node.shallow_size());
    }
    let classes_of = |node: u32| (node != NodeIndex::ROOT.0).then(|| class_of(node)).into_iter();
    let retained = retained_by_each(tree, classes.len(), classes_of, progress)?;
    classes.iter_mut().zip(retained).for_each(|(class, retained)| class.retained_size = retained);
    classes.retain(|class| class.count > 0);
    classes.sort_by_key(|class| core::cmp::Reverse(class.retained_size));
    Ok(classes)
}

/// The retained bytes of each leaf of a census, by the number of the leaf: the bytes of the nodes that the leaf
/// counts, and of all nodes that only they keep alive, each byte once. The numbers are as in
/// [`CensusTreeNode::leaves`](crate::census::CensusTreeNode::leaves) of a tree with the same breakdown. A part of the
/// report that is not a leaf has 0.
///
/// The retained sizes of different leaves overlap, so their sum may exceed the heap.
///
/// # Errors
///
/// Returns a [`CensusError`] if a node lacks a descriptive name that the breakdown needs.
pub fn retained_by_leaves(tree: &DominatorTree<'_>, breakdown: &Breakdown) -> Result<Vec<u128>, CensusError> {
    retained_by_leaves_watched(tree, breakdown, &AnalysisProgress::new())
}

/// [`retained_by_leaves`] with an [`AnalysisProgress`], which shows the progress and can cancel the analysis.
///
/// # Errors
///
/// Returns a [`CensusError`] if a node lacks a descriptive name that the breakdown needs, or if the analysis was
/// cancelled.
pub fn retained_by_leaves_watched(
    tree: &DominatorTree<'_>,
    breakdown: &Breakdown,
    progress: &AnalysisProgress,
) -> Result<Vec<u128>, CensusError> {
    let graph = tree.graph();
    let report = census_watched(graph, &breakdown.with_buckets(), progress)?;
    let mut of_nodes: Vec<(NodeIndex, u32)> = Vec::new();
    let count = leaves(&report, 0, &mut |id, leaf| {
        of_nodes.extend(graph.find(NodeId(id)).map(|node| (node.index(), leaf as u32)));
    });
    Ok(retained_by_groups_watched(tree, count, of_nodes, progress)?)
}

/// The retained bytes of each group, by the number of the group: the bytes of the group's nodes, and of all nodes
/// that only they keep alive, each byte once. `members` contains nodes with the numbers of their groups. A node may
/// be in several groups.
///
/// The retained sizes of different groups overlap, so their sum may exceed the heap.
///
/// # Panics
///
/// Panics if the number of a group is not less than `groups`.
pub fn retained_by_groups(
    tree: &DominatorTree<'_>,
    groups: usize,
    members: Vec<(NodeIndex, u32)>,
) -> Vec<u128> {
    retained_by_groups_watched(tree, groups, members, &AnalysisProgress::new()).expect(NOT_CANCELLED)
}

/// [`retained_by_groups`] with an [`AnalysisProgress`], which shows the progress and can cancel the analysis.
///
/// # Errors
///
/// Returns a [`CancelledError`] if the analysis was cancelled.
///
/// # Panics
///
/// Panics if the number of a group is not less than `groups`.
pub fn retained_by_groups_watched(
    tree: &DominatorTree<'_>,
    groups: usize,
    mut members: Vec<(NodeIndex, u32)>,
    progress: &AnalysisProgress,
) -> Result<Vec<u128>, CancelledError> {
    members.sort_unstable();
    // The start of each node's groups.
    let mut starts = vec![0_u32; tree.graph().node_count() + 1];
    members.iter().for_each(|(node, _)| starts[node.get() + 1] += 1);
    (1..starts.len()).for_each(|node| starts[node] += starts[node - 1]);
    let groups_of = |node: u32| {
        let [start, end] = [0, 1].map(|next| starts[node as usize + next] as usize);
        members[start..end].iter().map(|(_, group)| *group as usize)
    };
    retained_by_each(tree, groups, groups_of, progress)
}

/// Calls `each` with the ids and the number of each leaf. Returns the number after the last part of the report.
fn leaves(report: &CensusReport, first: usize, each: &mut impl FnMut(u64, usize)) -> usize {
    if let CensusReport::Bucket(ids) = report {
        ids.iter().for_each(|id| each(*id, first));
        return first + 1;
    }
    report.children().into_iter().fold(first + 1, |next, (_, below)| leaves(below, next, each))
}

/// The nodes that a selection keeps alive: all nodes that the root reaches only through the selection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RetainedSet<'a> {
    /// The nodes in the order of the graph. They include the reachable nodes of the selection itself.
    pub nodes: Vec<HeapNode<'a>>,
    /// The bytes of the nodes.
    pub bytes: u128,
}

impl<'a> RetainedSet<'a> {
    /// The retained set of a selection.
    pub fn new(graph: &'a Graph, selection: &[NodeIndex]) -> Self {
        let mut selected = vec![false; graph.node_count()];
        selection.iter().for_each(|node| selected[node.get()] = true);
        // 0: no walk has met the node. 1: met only through the selection. 2: met on another path.
        let mut met = vec![0_u8; graph.node_count()];
        for (round, avoids) in [(1, false), (2, true)] {
            if avoids && selected[0] {
                break;
            }
            met[0] = round;
            let mut walk = BreadthFirst::new(graph);
            while let Some(from) = walk.next() {
                for to in graph.referents(from) {
                    if !(avoids && selected[*to as usize]) && walk.arrive(*to) {
                        met[*to as usize] = round;
                    }
                }
            }
        }
        let nodes: Vec<_> = graph.nodes().filter(|node| met[node.index().get()] == 1).collect();
        let bytes = nodes.iter().map(|node| u128::from(node.shallow_size())).sum();
        Self { nodes, bytes }
    }
}
