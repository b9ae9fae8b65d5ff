//! The destination of a walk's nodes and edges: a graph in memory, or a file.

use super::descriptions::NodeDescriptions;
use super::found_node::FoundNode;
use super::nodes::WalkNodes;
use crate::graph::GraphTextId;

/// Receives the nodes and edges of a walk, in the order of the walk.
///
/// The walk calls [`node`](Self::node) for a block or value that it meets for the first time, and
/// [`open`](Self::open) when it enters a new or known block or value. Edges and pointers then start from the innermost
/// open node, until [`close`](Self::close).
pub(super) trait GraphSink {
    /// Receives a new node. It has the next number.
    fn node(&mut self, node: u32, found: FoundNode);

    /// Receives an edge between two nodes that the walk has met.
    fn edge(&mut self, from: u32, to: u32, name: Option<GraphTextId>, nodes: &WalkNodes);

    /// Receives a pointer to an address that the walk may meet later, or never.
    fn pointer(&mut self, from: u32, to: usize, name: Option<GraphTextId>, nodes: &WalkNodes);

    /// The walk continues without entering the node that it met last.
    fn settle(&mut self, descriptions: &NodeDescriptions<'_>);

    /// The walk enters the block or value that it met last.
    fn open(&mut self);

    /// The walk leaves the node that it opened last.
    fn close(&mut self, descriptions: &NodeDescriptions<'_>);

    /// The walk leaves all open nodes: a root has ended, perhaps by a panic.
    fn close_all(&mut self, descriptions: &NodeDescriptions<'_>);
}
