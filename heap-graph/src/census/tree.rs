//! A report as a tree for display, with totals and sorted children. It can be inverted or filtered.

mod grow;
mod json;
mod reshape;

use core::fmt;

use indexmap::IndexSet;

use super::difference::CensusDifference;
use super::report::{CensusFrame, CensusReport};
use crate::graph::GraphText;

/// The options of a [`CensusTree`].
#[derive(Clone, Debug, Default)]
pub struct TreeOptions {
    pub(crate) invert: bool,
    pub(crate) filter: Option<String>,
}

impl TreeOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether to turn leaves into roots, with the nodes that led to them as children. Default: no.
    pub fn invert(mut self, invert: bool) -> Self {
        self.invert = invert;
        self
    }

    /// Keeps only paths through a node whose name contains this text. By default all paths are kept.
    pub fn filter(mut self, text: impl Into<String>) -> Self {
        self.filter = Some(text.into());
        self
    }
}

/// A report as a tree.
#[derive(Clone, Debug)]
pub struct CensusTree {
    /// The nodes, with the root first.
    nodes: Vec<CensusTreeNode>,
}

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CensusTreeNode {
    /// The number of the node, from 1. Nodes are numbered in the order of construction.
    pub id: u64,
    /// The key in the report, or one frame of the key; `None` for the root.
    pub name: Option<CensusTreeName>,
    /// The bytes counted here.
    pub bytes: i128,
    /// The bytes counted here and below.
    pub total_bytes: i128,
    /// The number of the graph's nodes counted here.
    pub count: i128,
    /// The number of the graph's nodes counted here and below.
    pub total_count: i128,
    /// The leaves of the report that are counted here, by number. The parts of the report are numbered in the
    /// report's order. [`individuals`](crate::dominators::individuals()) finds the graph's nodes of these leaves.
    pub leaves: IndexSet<u64>,
    parent: Option<usize>,
    children: Vec<usize>,
    /// Whether the node had children, but all were left out because they have no counts. Such a node is not a leaf.
    is_pruned: bool,
}

/// The name of a node of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "reports have only these kinds of keys")]
pub enum CensusTreeName {
    /// A text.
    Text(GraphText<'static>),
    /// A frame, without its callers.
    Frame(CensusFrame),
}

impl fmt::Display for CensusTreeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => text.fmt(f),
            Self::Frame(frame) => frame.fmt(f),
        }
    }
}

impl CensusTreeName {
    /// The name as Firefox shows it; `None` is the root.
    pub fn title(name: Option<&Self>) -> String {
        let Some(name) = name else { return "(root)".to_owned() };
        match name.to_string() {
            name if name == "noStack" => "(no stack available)".to_owned(),
            name if name == "noFilename" => "(no filename available)".to_owned(),
            name => name,
        }
    }

    fn contains(&self, text: &str) -> bool {
        match self {
            Self::Text(name) => name.contains(text),
            Self::Frame(frame) => {
                frame.source.contains(text) || frame.function.as_ref().is_some_and(|name| name.contains(text))
            }
        }
    }
}

impl CensusTree {
    /// The tree of a report. It leaves out keys without counts. It has one node for each frame of a stack, with the
    /// outermost frame on top.
    ///
    /// As in Firefox, an inverted or filtered tree lacks some paths: if all children of a node are left out, the path
    /// to the node is missing. This happens in a difference if the bytes of a frame changed, but the bytes of the
    /// frames that it called did not.
    pub fn new(report: &CensusReport, options: &TreeOptions) -> Self {
        let mut made = 0;
        let mut tree = grow::tree(report, &mut made);
        if options.invert {
            tree = reshape::inverted(&tree, &mut made);
        }
        if let Some(text) = &options.filter {
            tree = reshape::filtered(&tree, text, &mut made);
        }
        if options.invert {
            tree.sort(CensusTreeNode::by_own);
        } else {
            tree.sort(CensusTreeNode::by_total);
        }
        tree
    }

    /// The tree of a difference. Its root contains the totals of the first report, as the basis for percentages.
    pub fn from_difference(difference: &CensusDifference, options: &TreeOptions) -> Self {
        let mut tree = Self::new(&difference.delta, options);
        let root = &mut tree.nodes[0];
        root.total_bytes = difference.basis_total_bytes;
        root.total_count = difference.basis_total_count;
        tree
    }

    /// The root. Its totals are the report's totals, even if the tree is filtered. In the tree of a difference, they
    /// are the totals of the first report.
    pub fn root(&self) -> &CensusTreeNode {
        &self.nodes[0]
    }

    /// A node's children, ordered by total bytes or, in an inverted tree, by own bytes. The largest absolute number is
    /// first.
    pub fn children<'a>(&'a self, node: &'a CensusTreeNode) -> impl Iterator<Item = &'a CensusTreeNode> {
        node.children.iter().map(|child| &self.nodes[*child])
    }

    /// The number of children of a node.
    pub fn child_count(&self, node: &CensusTreeNode) -> usize {
        node.children.len()
    }

    /// The node with this [`CensusTreeNode::id`]; `None` if no node of the tree has this id.
    pub fn find(&self, id: u64) -> Option<&CensusTreeNode> {
        // Nodes are in the order of their numbers.
        let place = self.nodes.binary_search_by_key(&id, |node| node.id).ok()?;
        self.nodes.get(place)
    }

    /// The approximate memory of the tree in bytes, without the texts of its names.
    pub fn memory(&self) -> usize {
        let lists = self.nodes.iter().map(|node| {
            node.children.capacity() * size_of::<usize>() + node.leaves.capacity() * 2 * size_of::<u64>()
        });
        self.nodes.capacity() * size_of::<CensusTreeNode>() + lists.sum::<usize>()
    }

    fn with_root(made: &mut u64) -> Self {
        let mut tree = Self { nodes: Vec::new() };
        tree.add(None, None, made);
        tree
    }

    fn add(&mut self, parent: Option<usize>, name: Option<CensusTreeName>, made: &mut u64) -> usize {
        *made += 1;
        self.nodes.push(CensusTreeNode {
            id: *made,
            name,
            bytes: 0,
            total_bytes: 0,
            count: 0,
            total_count: 0,
            leaves: IndexSet::new(),
            parent,
            children: Vec::new(),
            is_pruned: false,
        });
        let place = self.nodes.len() - 1;
        if let Some(parent) = parent {
            self.nodes[parent].children.push(place);
        }
        place
    }

    /// Sorts all children, the largest absolute numbers first.
    fn sort(&mut self, numbers: impl Fn(&CensusTreeNode) -> [i128; 4]) {
        for place in 0..self.nodes.len() {
            self.sort_children(place, &numbers);
        }
    }

    fn sort_children(&mut self, place: usize, numbers: impl Fn(&CensusTreeNode) -> [i128; 4]) {
        let mut children = core::mem::take(&mut self.nodes[place].children);
        let weight = |place: &usize| numbers(&self.nodes[*place]).map(i128::unsigned_abs);
        children.sort_by_cached_key(|place| core::cmp::Reverse(weight(place)));
        self.nodes[place].children = children;
    }
}

impl CensusTreeNode {
    fn by_total(&self) -> [i128; 4] {
        [self.total_bytes, self.total_count, self.bytes, self.count]
    }

    fn by_own(&self) -> [i128; 4] {
        [self.bytes, self.count, self.total_bytes, self.total_count]
    }
}
