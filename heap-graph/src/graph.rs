//! The graph: flat arrays that do not change once they are built.
//!
//! A node takes 8 bytes for its id, 8 for its size, 4 for its kind, 4 for its first edge and about 8 in the table of
//! ids; an edge takes 8. The graph keeps each combination of type, class, file, descriptive name, coarse type and
//! allocation stack once, as a kind, so that a census looks at kinds and not at nodes.

mod builder;
mod coarse_type;
mod error;
mod frame;
mod id_table;
mod node;
mod text;

pub use builder::{GraphBuilder, NodeParts};
pub use coarse_type::CoarseType;
pub use error::GraphError;
pub(crate) use frame::FrameTable;
pub use frame::{FrameParts, GraphFrameId};
pub use node::{AllocationStack, GraphEdge, HeapNode};
pub(crate) use text::TextTable;
pub use text::{GraphText, GraphTextId};

use core::hash::{Hash, Hasher};

use crate::prefetch::prefetch;
use id_table::IdTable;

/// A node's name, unique in its graph and the same after writing and reading. In a snapshot of Firefox or of a running
/// program it is an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "a number with a meaning")]
pub struct NodeId(pub u64);

impl core::fmt::Display for NodeId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A node's place in its graph. The root is 0. Analyses take and return it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub(crate) u32);

impl NodeIndex {
    /// The root of any graph.
    pub const ROOT: Self = Self(0);

    pub(crate) fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("a graph has less than 2^32 nodes"))
    }

    /// The index into an array with an element for each node.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

/// The type, names and stack that several nodes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeKind {
    pub(crate) type_name: GraphTextId,
    pub(crate) class_name: Option<GraphTextId>,
    pub(crate) file_name: Option<GraphTextId>,
    pub(crate) descriptive_name: Option<GraphTextId>,
    pub(crate) stack: Option<GraphFrameId>,
    pub(crate) coarse_type: CoarseType,
}

impl Hash for NodeKind {
    /// Hashes three numbers in place of six fields: a builder hashes the kind of nearly every node.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let text = |text: Option<GraphTextId>| text.map_or(0, |text| text.index() as u64 + 1);
        let stack = self.stack.map_or(0, |frame| frame.index() as u64 + 1);
        state.write_u64(text(Some(self.type_name)) << 32 | text(self.class_name));
        state.write_u64(text(self.file_name) << 32 | text(self.descriptive_name));
        state.write_u64(stack << 32 | u64::from(self.coarse_type.number()));
    }
}

/// A heap: nodes with shallow sizes, named edges between them, and a root with edges to the program's roots.
#[derive(Clone, Debug)]
pub struct Graph {
    ids: Box<[u64]>,
    sizes: Box<[u64]>,
    /// The sum of the sizes.
    total_size: u128,
    kinds_of: Box<[u32]>,
    /// Where each node's edges start in `referents`, and where the last node's edges end.
    first_edges: Box<[u32]>,
    referents: Box<[u32]>,
    edge_names: Box<[Option<GraphTextId>]>,
    kinds: Box<[NodeKind]>,
    texts: TextTable,
    frames: FrameTable,
    by_id: IdTable,
    creation_time: Option<u64>,
}

impl Graph {
    /// The number of nodes, the root included.
    pub fn node_count(&self) -> usize {
        self.ids.len()
    }

    /// The number of edges; parallel ones count each.
    pub fn edge_count(&self) -> usize {
        self.referents.len()
    }

    /// The number of different texts: names of types, edges, files and functions.
    pub fn text_count(&self) -> usize {
        self.texts.len()
    }

    /// The number of different frames of allocation stacks.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The time at which the snapshot was taken, in microseconds since 1970 UTC; `None` if the snapshot has none.
    pub fn creation_time(&self) -> Option<u64> {
        self.creation_time
    }

    /// The root.
    pub fn root(&self) -> HeapNode<'_> {
        self.node(NodeIndex::ROOT)
    }

    /// The node at a place.
    ///
    /// # Panics
    ///
    /// If the index comes from another graph and is too big for this one.
    pub fn node(&self, index: NodeIndex) -> HeapNode<'_> {
        assert!(index.get() < self.ids.len(), "node {} of a graph of {} nodes", index.0, self.ids.len());
        HeapNode::new(self, index)
    }

    /// The node with this id.
    pub fn find(&self, id: NodeId) -> Option<HeapNode<'_>> {
        self.by_id.find(id.0, &self.ids).map(|index| self.node(NodeIndex(index)))
    }

    /// All nodes, the root first, reachable or not.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = HeapNode<'_>> {
        (0..self.ids.len()).map(|index| self.node(NodeIndex::new(index)))
    }

    /// The text with this id.
    ///
    /// # Panics
    ///
    /// If the id comes from another graph and is too big for this one.
    pub fn text(&self, id: GraphTextId) -> GraphText<'_> {
        self.texts.get(id)
    }

    /// Bytes of memory that this graph takes: for nodes and edges, and for names and frames.
    pub fn memory(&self) -> (usize, usize) {
        let flat = size_of_val(&*self.ids)
            + size_of_val(&*self.sizes)
            + size_of_val(&*self.kinds_of)
            + size_of_val(&*self.first_edges)
            + size_of_val(&*self.referents)
            + size_of_val(&*self.edge_names)
            + self.by_id.memory();
        (flat, size_of_val(&*self.kinds) + self.texts.memory() + self.frames.memory())
    }

    pub(crate) fn ids(&self) -> &[u64] {
        &self.ids
    }

    pub(crate) fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// The sum of all sizes, also of unreachable nodes.
    pub(crate) fn total_size(&self) -> u128 {
        self.total_size
    }

    pub(crate) fn kinds_of(&self) -> &[u32] {
        &self.kinds_of
    }

    pub(crate) fn kinds(&self) -> &[NodeKind] {
        &self.kinds
    }

    pub(crate) fn texts(&self) -> &TextTable {
        &self.texts
    }

    pub(crate) fn frames(&self) -> &FrameTable {
        &self.frames
    }

    /// The nodes that the node's edges lead to, in the order of the edges.
    #[inline]
    pub(crate) fn referents(&self, index: u32) -> &[u32] {
        &self.referents[self.edge_range(index)]
    }

    #[inline]
    pub(crate) fn edge_range(&self, index: u32) -> core::ops::Range<usize> {
        self.first_edges[index as usize] as usize..self.first_edges[index as usize + 1] as usize
    }

    /// The nodes that all edges lead to, in the order of the edges.
    pub(crate) fn all_referents(&self) -> &[u32] {
        &self.referents
    }

    /// Fetches the node's last edge, since the caller reads the edges soon and backwards.
    #[inline]
    pub(crate) fn prefetch_edges(&self, index: u32) {
        prefetch(&self.referents, (self.first_edges[index as usize + 1] as usize).wrapping_sub(1));
    }

    pub(crate) fn edge_name(&self, edge: usize) -> Option<GraphTextId> {
        self.edge_names[edge]
    }

    pub(crate) fn referent(&self, edge: usize) -> u32 {
        self.referents[edge]
    }

    /// The node to which an edge belongs.
    pub(crate) fn source(&self, edge: usize) -> u32 {
        // Nodes without edges begin where the next one does.
        self.first_edges.partition_point(|first| *first as usize <= edge) as u32 - 1
    }
}
