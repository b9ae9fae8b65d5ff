//! The data of each node of a process's trees.

use crate::presence::Presence;
use crate::report::Units;

pub(super) const NONE: u32 = u32::MAX;

/// One node; its children are a list linked by `next`.
#[derive(Clone, Copy)]
pub(super) struct NodeData<'a> {
    pub(super) path: &'a str,
    pub(super) amount: i128,
    /// The offset of the node's name in `path`; the text before it belongs to its ancestors.
    pub(super) start: u32,
    pub(super) first_child: u32,
    pub(super) next: u32,
    /// The index of the first report of a leaf. For an inner node, the smallest index of its descendants.
    pub(super) row: u32,
    /// The number of reports with the path of this node; 0 for inner nodes.
    pub(super) reports: u32,
    pub(super) merged: u32,
    pub(super) units: Units,
    pub(super) source: NodeSource,
    pub(super) presence: Presence,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeSource {
    Reports,
    Itself,
    HeapUnclassified,
}
