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
    /// The groups of a census before they are a tree.
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
        /// A bit for each node: whether it stays.
        kept: Vec<u64>,
        /// How many nodes have the name that the filter wants; the others dominate them.
        found: usize,
    },
    /// The retained sizes of classes, the largest first.
    Classes(Vec<SuspectClass>),
    /// The walk that all paths of a snapshot follow.
    Walk(PathTree),
    /// Nodes, the largest retained size first, and their number if the list is cut.
    Nodes {
        /// The tree that has their sizes.
        tree: SharedDominators,
        /// The nodes.
        nodes: Vec<NodeIndex>,
        /// How many there are.
        found: usize,
    },
    /// Nodes, and groups of nodes of one class, that keep a large part of the heap alive, the biggest first.
    Suspects {
        /// The tree that has their sizes.
        tree: SharedDominators,
        /// The suspects.
        groups: Vec<SuspectGroup>,
    },
    /// Paths, each from the root to the node.
    Paths(Vec<Vec<PathStep>>),
}

/// A suspect: a node, or several nodes of one class that retain much together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuspectGroup {
    /// The class, or the type of nodes without a class.
    pub class: String,
    /// The number of nodes.
    pub count: usize,
    /// Bytes of the nodes themselves.
    pub shallow: u128,
    /// Bytes that they keep alive together.
    pub retained: u128,
    /// The nodes that retain most, at most 1,000.
    pub nodes: Vec<NodeIndex>,
}

/// The nodes of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuspectClass {
    /// The class, or the type of nodes without a class.
    pub name: String,
    /// The number of nodes.
    pub count: u64,
    /// Bytes of the nodes themselves.
    pub shallow: u128,
    /// Bytes that go with them, each byte once.
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
    /// The groups inside, the biggest first.
    pub inside: Vec<TreeMapBox>,
    /// The number of smaller groups inside that have no box.
    pub left_out: usize,
    /// The bytes of their nodes.
    pub left_out_bytes: i128,
}

/// A node of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStep {
    /// The node's id.
    pub node: u64,
    /// Its name.
    pub name: String,
    /// The name of the edge that leads on from it; `None` for the last node, and for an edge without a name.
    pub edge: Option<String>,
}

impl QueryAnswer {
    /// Bytes of memory that the answer takes, about.
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
            // It keeps its tree alive, also when the cache has given that up.
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
