//! Answers to queries.

use heap_graph::NodeIndex;
use heap_graph::census::{CensusReport, CensusTree};
use heap_graph::dominators::SharedDominators;
use heap_graph::paths::PathTree;

use super::generations::Generations;

/// The answer to a query. A front end reads trees and lists of nodes as [`RowWindow`](super::RowWindow).
#[derive(Debug)]
#[non_exhaustive]
pub enum QueryAnswer {
    /// The groups of a census, before they become a tree.
    Report(CensusReport),
    /// A census or a difference.
    Tree(CensusTree),
    /// Several censuses side by side.
    Generations(Generations),
    /// A tree map.
    TreeMap(TreeMapBox),
    /// A dominator tree.
    Dominators(SharedDominators),
    /// The part of a dominator tree that a filter keeps.
    Part {
        /// The whole tree.
        tree: SharedDominators,
        /// A bit for each node: whether the node is kept.
        kept: Vec<u64>,
        /// The number of nodes whose name contains the filter's text. All other kept nodes dominate these nodes.
        found: usize,
    },
    /// The retained sizes of classes, the largest first.
    Classes(Vec<SuspectClass>),
    /// The walk that all paths of a snapshot share.
    Walk(PathTree),
    /// Nodes, the largest retained size first, and the number of nodes found. The list may be cut.
    Nodes {
        /// The tree with the nodes' retained sizes.
        tree: SharedDominators,
        /// The nodes.
        nodes: Vec<NodeIndex>,
        /// The number of nodes found.
        found: usize,
    },
    /// Nodes, and groups of nodes of one class, that keep a large part of the heap alive, the largest first.
    Suspects {
        /// The tree with the nodes' retained sizes.
        tree: SharedDominators,
        /// The suspects.
        groups: Vec<SuspectGroup>,
    },
    /// Paths, each from the root to the node.
    Paths(Vec<Vec<PathStep>>),
}

/// A suspect: a node, or several nodes of one class that together retain a large part of the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuspectGroup {
    /// The class, or the type of nodes without a class.
    pub class: String,
    /// The number of nodes.
    pub count: usize,
    /// The bytes of the nodes themselves.
    pub shallow: u128,
    /// The bytes that the nodes together keep alive.
    pub retained: u128,
    /// The nodes that retain the most, at most 1,000.
    pub nodes: Vec<NodeIndex>,
}

/// All nodes of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuspectClass {
    /// The class, or the type of nodes without a class.
    pub name: String,
    /// The number of nodes.
    pub count: u64,
    /// The bytes of the nodes themselves.
    pub shallow: u128,
    /// The bytes that would be freed with the nodes. Each byte counts once.
    pub retained: u128,
}

/// A box of a tree map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeMapBox {
    /// The name of the group.
    pub name: String,
    /// The bytes of its nodes.
    pub bytes: i128,
    /// The number of its nodes.
    pub count: i128,
    /// The groups inside, the largest first.
    pub inside: Vec<TreeMapBox>,
    /// The number of smaller groups inside that have no box.
    pub left_out: usize,
    /// The bytes of the nodes in these smaller groups.
    pub left_out_bytes: i128,
}

/// A node of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStep {
    /// The node's id.
    pub node: u64,
    /// The node's name.
    pub name: String,
    /// The name of the edge to the next node. `None` for the last node, and for an edge without a name.
    pub edge: Option<String>,
}

impl QueryAnswer {
    /// Returns about how many bytes of memory the answer takes.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Report(report) => report_memory(report),
            Self::Tree(tree) => tree.memory(),
            Self::Generations(generations) => generations.memory(),
            Self::TreeMap(root) => box_memory(root),
            Self::Dominators(tree) => tree.tree().memory(),
            Self::Part { tree, kept, .. } => kept.capacity() * size_of::<u64>() + tree.tree().memory(),
            Self::Classes(classes) => {
                classes.iter().map(|class| size_of::<SuspectClass>() + class.name.len()).sum()
            }
            Self::Walk(walk) => walk.memory(),
            // The answer keeps its tree alive, even after the cache has dropped the tree.
            Self::Nodes { nodes, tree, .. } => {
                nodes.capacity() * size_of::<NodeIndex>() + tree.tree().memory()
            }
            Self::Suspects { groups, tree } => {
                let of = |group: &SuspectGroup| {
                    size_of::<SuspectGroup>() + group.class.len() + group.nodes.len() * size_of::<NodeIndex>()
                };
                groups.iter().map(of).sum::<usize>() + tree.tree().memory()
            }
            Self::Paths(paths) => {
                let steps = paths.iter().flatten();
                steps.map(|step| size_of::<PathStep>() + step.name.len()).sum()
            }
        }
    }
}

fn report_memory(report: &CensusReport) -> usize {
    let below = report.children().into_iter().map(|(_, below)| report_memory(below)).sum::<usize>();
    let ids = if let CensusReport::Bucket(ids) = report { ids.len() * 8 } else { 0 };
    size_of::<CensusReport>() + 48 + ids + below
}

fn box_memory(of: &TreeMapBox) -> usize {
    size_of::<TreeMapBox>() + of.name.len() + of.inside.iter().map(box_memory).sum::<usize>()
}
