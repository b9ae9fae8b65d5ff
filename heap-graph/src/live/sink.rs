//! Where a walk puts nodes and edges: into memory, to be a graph, or into a file.

use super::descriptions::NodeDescriptions;
use super::found_node::FoundNode;
use super::nodes::WalkNodes;
use crate::graph::GraphTextId;

/// Takes the nodes and edges of a walk in its order.
///
/// The walk calls [`node`](Self::node) for a block or value that it meets for the first time, and
/// [`open`](Self::open) next if it goes into a block, a known one included. Edges and pointers then start from the
/// innermost open node until [`close`](Self::close).
pub(super) trait GraphSink {
    /// Takes a new node; it has the next number.
    fn node(&mut self, node: u32, found: FoundNode);

    /// Takes an edge between two nodes that the walk has met.
    fn edge(&mut self, from: u32, to: u32, name: Option<GraphTextId>, nodes: &WalkNodes);

    /// Takes a pointer to an address that the walk may meet later, or never.
    fn pointer(&mut self, from: u32, to: usize, name: Option<GraphTextId>, nodes: &WalkNodes);

    /// The walk goes on without opening the node that it met last.
    fn settle(&mut self, descriptions: &NodeDescriptions<'_>);

    /// The walk goes into the block or value that it met last.
    fn open(&mut self);

    /// The walk leaves what it opened last.
    fn close(&mut self, descriptions: &NodeDescriptions<'_>);

    /// The walk leaves all that is open: a root ends, maybe by a panic.
    fn close_all(&mut self, descriptions: &NodeDescriptions<'_>);
}
