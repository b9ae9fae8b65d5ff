//! Builds a graph node by node. A node is followed by its edges. The targets of edges may be added later.

use hashbrown::HashMap;
use memory_reporter::watching::SiteFrame;

use super::coarse_type::CoarseType;
use super::error::GraphError;
use super::frame::{FrameParts, FrameTable, GraphFrameId};
use super::id_table::IdTable;
use super::text::{GraphTextId, TextTable};
use super::{Graph, NodeId, NodeKind};

/// The data of a node that is added to a builder or writer.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "a builder's user fills it in, field by field")]
pub struct NodeParts {
    /// The id, unique in the graph.
    pub id: NodeId,
    /// The bytes of the node itself.
    pub shallow_size: u64,
    /// The name of the concrete type.
    pub type_name: GraphTextId,
    /// The coarse type.
    pub coarse_type: CoarseType,
    /// The name of an object's class.
    pub class_name: Option<GraphTextId>,
    /// The file that a script comes from.
    pub script_file_name: Option<GraphTextId>,
    /// A name that is more specific than the type.
    pub descriptive_type_name: Option<GraphTextId>,
    /// The innermost frame of the stack that allocated the node.
    pub allocation_stack: Option<GraphFrameId>,
}

impl NodeParts {
    /// A node with an id, a size in bytes and a type. Its coarse type is [`Other`](CoarseType::Other).
    pub fn new(id: NodeId, shallow_size: u64, type_name: GraphTextId) -> Self {
        Self {
            id,
            shallow_size,
            type_name,
            coarse_type: CoarseType::Other,
            class_name: None,
            script_file_name: None,
            descriptive_type_name: None,
            allocation_stack: None,
        }
    }
}

impl NodeKind {
    pub(crate) fn new(node: &NodeParts) -> Self {
        Self {
            type_name: node.type_name,
            class_name: node.class_name,
            file_name: node.script_file_name,
            descriptive_name: node.descriptive_type_name,
            stack: node.allocation_stack,
            coarse_type: node.coarse_type,
        }
    }
}

/// Builds a [`Graph`]. The first node is the root.
///
/// ```
/// use heap_graph::{GraphBuilder, NodeId, NodeParts};
///
/// # fn main() -> Result<(), heap_graph::graph::GraphError> {
/// let mut builder = GraphBuilder::new();
/// let (roots, cache, held) = (builder.text("roots")?, builder.text("Cache")?, builder.text("cache")?);
/// builder.node(NodeParts::new(NodeId(1), 0, roots))?;
/// builder.edge(NodeId(2), Some(held))?;
/// builder.node(NodeParts::new(NodeId(2), 96, cache))?;
/// let graph = builder.finish()?;
/// assert_eq!(graph.root().edges().next().map(|edge| edge.referent.shallow_size()), Some(96));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct GraphBuilder {
    ids: Vec<u64>,
    sizes: Vec<u64>,
    total_size: u128,
    kinds_of: Vec<u32>,
    first_edges: Vec<u32>,
    /// The ids of the edges' targets. Their indices are known only at the end.
    referents: Vec<u64>,
    edge_names: Vec<Option<GraphTextId>>,
    kinds: Vec<NodeKind>,
    kind_ids: HashMap<NodeKind, u32>,
    /// The kind of the previous node: adjacent nodes often have the same kind.
    last_kind: Option<(NodeKind, u32)>,
    pub(crate) texts: TextTable,
    pub(crate) frames: FrameTable,
    creation_time: Option<u64>,
}

impl GraphBuilder {
    /// A graph without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time of the snapshot, in microseconds since 1970 UTC.
    pub fn set_creation_time(&mut self, microseconds: Option<u64>) {
        self.creation_time = microseconds;
    }

    /// Adds a text, or finds an equal text that was added before.
    ///
    /// # Errors
    ///
    /// Returns [`GraphError::TooMany`] after 2^32 - 1 texts.
    pub fn text(&mut self, text: &str) -> Result<GraphTextId, GraphError> {
        self.texts.intern(text.as_bytes()).ok_or(GraphError::TooMany("texts"))
    }

    /// Adds a frame, or finds an equal frame that was added before. As in Firefox, an empty function name counts as
    /// no name.
    ///
    /// # Errors
    ///
    /// Returns [`GraphError::TooMany`] after 2^32 - 2 frames.
    pub fn frame(&mut self, mut frame: FrameParts) -> Result<GraphFrameId, GraphError> {
        frame.function = frame.function.filter(|name| !self.texts.get(*name).as_wtf8().is_empty());
        self.frames.intern(frame).ok_or(GraphError::TooMany("frames"))
    }

    /// Adds a stack, or finds an equal stack that was added before. The first of `frames` is the innermost. Returns
    /// the innermost frame; `None` if the stack has no frames. A node with such a stack needs
    /// [`GraphFrameId::EMPTY_STACK`]: `None` means that no stack was recorded.
    ///
    /// # Errors
    ///
    /// Returns [`GraphError::TooMany`] after 2^32 - 2 frames or 2^32 - 1 texts.
    pub fn stack(&mut self, frames: &[SiteFrame]) -> Result<Option<GraphFrameId>, GraphError> {
        let mut youngest = None;
        for frame in frames.iter().rev() {
            let function = frame.function.as_deref().map(|function| self.text(function)).transpose()?;
            let parts = FrameParts {
                parent: youngest,
                source: self.text(&frame.source)?,
                line: frame.line,
                column: frame.column,
                function,
                is_system: frame.is_system,
                is_self_hosted: false,
            };
            youngest = Some(self.frame(parts)?);
        }
        Ok(youngest)
    }

    /// The number of nodes added so far.
    pub fn node_count(&self) -> usize {
        self.ids.len()
    }

    /// Adds a node. The edges that are added next belong to it.
    ///
    /// # Errors
    ///
    /// Returns [`GraphError::TooMany`] after 2^32 - 2 nodes.
    pub fn node(&mut self, node: NodeParts) -> Result<(), GraphError> {
        // Analyses use the highest number for "none".
        if self.ids.len() >= u32::MAX as usize - 1 {
            return Err(GraphError::TooMany("nodes"));
        }
        let kind = self.kind(&node);
        self.first_edges.push(self.referents.len() as u32);
        self.ids.push(node.id.0);
        self.sizes.push(node.shallow_size);
        self.total_size += u128::from(node.shallow_size);
        self.kinds_of.push(kind);
        Ok(())
    }

    fn kind(&mut self, node: &NodeParts) -> u32 {
        let kind = NodeKind::new(node);
        if let Some((last, id)) = self.last_kind
            && last == kind
        {
            return id;
        }
        let kinds = &mut self.kinds;
        let id = *self.kind_ids.entry(kind).or_insert_with(|| {
            kinds.push(kind);
            // There are at most as many kinds as nodes, so the number fits in 32 bits.
            kinds.len() as u32 - 1
        });
        self.last_kind = Some((kind, id));
        id
    }

    /// Adds an edge to the last added node.
    ///
    /// # Errors
    ///
    /// Returns [`GraphError::TooMany`] after 2^32 - 1 edges.
    pub fn edge(&mut self, referent: NodeId, name: Option<GraphTextId>) -> Result<(), GraphError> {
        if self.referents.len() >= u32::MAX as usize {
            return Err(GraphError::TooMany("edges"));
        }
        self.referents.push(referent.0);
        self.edge_names.push(name);
        Ok(())
    }

    /// Finishes the graph.
    ///
    /// # Errors
    ///
    /// Returns [`GraphError::NoNodes`] if no node was added, [`GraphError::DuplicateId`] if two nodes have the same id,
    /// [`GraphError::MissingReferent`] if the target of an edge was not added.
    pub fn finish(mut self) -> Result<Graph, GraphError> {
        if self.ids.is_empty() {
            return Err(GraphError::NoNodes);
        }
        self.first_edges.push(self.referents.len() as u32);
        let by_id = IdTable::new(&self.ids)?;
        let referents = match by_id.find_all(&self.referents, &self.ids) {
            Ok(referents) => referents,
            Err(edge) => return Err(self.missing(edge)),
        };
        self.texts.shrink();
        Ok(Graph {
            ids: self.ids.into_boxed_slice(),
            sizes: self.sizes.into_boxed_slice(),
            total_size: self.total_size,
            kinds_of: self.kinds_of.into_boxed_slice(),
            first_edges: self.first_edges.into_boxed_slice(),
            referents,
            edge_names: self.edge_names.into_boxed_slice(),
            kinds: self.kinds.into_boxed_slice(),
            texts: self.texts,
            frames: self.frames,
            by_id,
            creation_time: self.creation_time,
        })
    }

    #[cold]
    fn missing(&self, edge: usize) -> GraphError {
        let node = self.first_edges.partition_point(|first| *first as usize <= edge) - 1;
        GraphError::MissingReferent {
            node: NodeId(self.ids[node]),
            node_position: node,
            edge: edge - self.first_edges[node] as usize,
            referent: NodeId(self.referents[edge]),
        }
    }
}
