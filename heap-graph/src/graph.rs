//! The graph: flat arrays that do not change after the graph is built.
//!
//! A node takes 8 bytes for its id, 8 for its size, 4 for its kind, 4 for its first edge and about 8 in the table of
//! ids. An edge takes 8 bytes. A kind is a combination of type, class, file, descriptive name, coarse type and
//! allocation stack. The graph stores each kind once, so that a census processes kinds, not nodes.

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

/// The id of a node. It is unique in its graph, and stays the same after writing and reading. In a snapshot of
/// Firefox or of a running program, most ids are addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "a number with a meaning")]
pub struct NodeId(pub u64);

impl core::fmt::Display for NodeId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// The index of a node in its graph. The root has 0. Analyses take and return indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub(crate) u32);

impl NodeIndex {
    /// The root of any graph.
    pub const ROOT: Self = Self(0);

    pub(crate) fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("a graph has fewer than 2^32 nodes"))
    }

    /// The index as a `usize`, for arrays with one element for each node.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

/// The type, the names and the stack that all nodes of a kind share.
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
    /// Hashes three numbers instead of six fields, for speed: a builder hashes the kind of each node that differs in
    /// kind from the node before it.
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
    /// The sum of the nodes' sizes in bytes.
    total_size: u128,
    kinds_of: Box<[u32]>,
    /// The start of each node's edges in `referents`, and the end of the last node's edges.
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
    /// The number of nodes, including the root.
    pub fn node_count(&self) -> usize {
        self.ids.len()
    }

    /// The number of edges. Parallel edges count separately.
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

    /// The time of the snapshot, in microseconds since 1970 UTC; `None` if the snapshot does not contain it.
    pub fn creation_time(&self) -> Option<u64> {
        self.creation_time
    }

    /// The root.
    pub fn root(&self) -> HeapNode<'_> {
        self.node(NodeIndex::ROOT)
    }

    /// The node at an index.
    ///
    /// # Panics
    ///
    /// Panics if the index is from another graph and too large for this graph.
    pub fn node(&self, index: NodeIndex) -> HeapNode<'_> {
        assert!(index.get() < self.ids.len(), "node {} of a graph of {} nodes", index.0, self.ids.len());
        HeapNode::new(self, index)
    }

    /// The node with this id; `None` if there is none.
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
    /// Panics if the id is from another graph and too large for this graph.
    pub fn text(&self, id: GraphTextId) -> GraphText<'_> {
        self.texts.get(id)
    }

    /// The memory of this graph in bytes: the first number for nodes and edges, the second for names and frames.
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

    /// The sum of all sizes in bytes, including unreachable nodes.
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

    /// The targets of the node's edges, in the order of the edges.
    #[inline]
    pub(crate) fn referents(&self, index: u32) -> &[u32] {
        &self.referents[self.edge_range(index)]
    }

    #[inline]
    pub(crate) fn edge_range(&self, index: u32) -> core::ops::Range<usize> {
        self.first_edges[index as usize] as usize..self.first_edges[index as usize + 1] as usize
    }

    /// The targets of all edges, in the order of the edges.
    pub(crate) fn all_referents(&self) -> &[u32] {
        &self.referents
    }

    /// Prefetches the target of the node's last edge.
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

    /// The node that an edge belongs to.
    pub(crate) fn source(&self, edge: usize) -> u32 {
        // If a node has no edges, its entry in `first_edges` equals the next node's entry. So the last of equal entries
        // belongs to the source.
        self.first_edges.partition_point(|first| *first as usize <= edge) as u32 - 1
    }
}
