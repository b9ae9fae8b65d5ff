//! The trees and lines of one process, and how to find an amount in them.

use core::fmt;
use std::borrow::Cow;

use crate::report_set::ReportSet;

use super::node::{Node, NodeData};

/// One process: its trees, and its lines (reports whose path has no `/`).
pub struct Process<'a> {
    pub(super) set: &'a ReportSet,
    pub(super) name: Cow<'a, str>,
    pub(super) resident: Option<i64>,
    pub(super) resident_unique: Option<i64>,
    pub(super) nodes: Vec<NodeData<'a>>,
    /// In a diff, for each node the largest amount below it, sign aside; empty otherwise.
    pub(super) largest_below: Vec<u128>,
    pub(super) trees: Vec<u32>,
    pub(super) lines: Vec<u32>,
}

impl<'a> Process<'a> {
    /// The name, never empty.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last `resident` amount in bytes, whatever was filtered.
    pub fn resident(&self) -> Option<i64> {
        self.resident
    }

    /// The last `resident-unique` amount in bytes, whatever was filtered.
    pub fn resident_unique(&self) -> Option<i64> {
        self.resident_unique
    }

    /// Whether amounts are differences; see [`ReportSet::is_diff`].
    pub fn is_diff(&self) -> bool {
        self.set.is_diff()
    }

    /// Whether there is neither tree nor line.
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty() && self.lines.is_empty()
    }

    /// The roots of the trees, in no particular order.
    pub fn trees(&self) -> impl Iterator<Item = Node<'_, 'a>> {
        self.trees.iter().map(|&id| Node { process: self, id })
    }

    /// The reports whose path has no `/`, in no particular order.
    pub fn lines(&self) -> impl Iterator<Item = Node<'_, 'a>> {
        self.lines.iter().map(|&id| Node { process: self, id })
    }

    /// The line with this name.
    pub fn line(&self, name: &str) -> Option<Node<'_, 'a>> {
        self.lines().find(|line| line.path() == name)
    }

    /// The node at `path`, written as in the reports. In the middle of a merged chain it is the
    /// whole chain, whose amount is the same; where a tree and a line share a name it is the tree.
    pub fn node(&self, path: &str) -> Option<Node<'_, 'a>> {
        let root = path.split('/').next().unwrap_or(path);
        let Some(mut node) = self.trees().find(|tree| tree.path() == root) else {
            return self.line(path);
        };
        loop {
            let at = node.path().len();
            if path.len() <= at {
                return Some(node);
            }
            let rest = &path[at + 1..];
            node = node.children().find(|child| leads_to(*child, rest))?;
            if node.is_itself() {
                return Some(node);
            }
        }
    }

    /// The amount at `path`, in the units of its tree: of a leaf, of an inner node (the sum below
    /// it), of `explicit/heap-unclassified`, or of a line.
    pub fn amount(&self, path: &str) -> Option<i128> {
        self.node(path).map(Node::amount)
    }
}

/// Whether what remains of a path is this child, in it (a merged chain), or below it.
fn leads_to(child: Node<'_, '_>, rest: &str) -> bool {
    let name = child.name();
    if child.is_itself() {
        return rest == name;
    }
    let (short, long) = if rest.len() <= name.len() { (rest, name) } else { (name, rest) };
    long.starts_with(short) && (long.len() == short.len() || long.as_bytes()[short.len()] == b'/')
}

impl fmt::Debug for Process<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("name", &self.name)
            .field("trees", &self.trees.len())
            .field("lines", &self.lines.len())
            .field("nodes", &self.nodes.len())
            .finish_non_exhaustive()
    }
}
