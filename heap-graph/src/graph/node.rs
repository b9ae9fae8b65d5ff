//! Views of a graph's nodes, edges and stacks.

use core::fmt;

use super::coarse_type::CoarseType;
use super::frame::{FrameParts, GraphFrameId};
use super::text::{GraphText, GraphTextId};
use super::{Graph, NodeId, NodeIndex, NodeKind};

/// One node of a graph.
#[derive(Clone, Copy)]
pub struct HeapNode<'a> {
    graph: &'a Graph,
    index: NodeIndex,
}

impl<'a> HeapNode<'a> {
    pub(super) fn new(graph: &'a Graph, index: NodeIndex) -> Self {
        Self { graph, index }
    }

    pub(crate) fn graph(self) -> &'a Graph {
        self.graph
    }

    /// The node's index in the graph.
    pub fn index(self) -> NodeIndex {
        self.index
    }

    /// The node's id.
    pub fn id(self) -> NodeId {
        NodeId(self.graph.ids[self.index.get()])
    }

    /// The bytes of the node itself.
    pub fn shallow_size(self) -> u64 {
        self.graph.sizes[self.index.get()]
    }

    fn kind(self) -> &'a NodeKind {
        &self.graph.kinds[self.graph.kinds_of[self.index.get()] as usize]
    }

    /// The name of the concrete type, such as `JSString` or `alloc::vec::Vec<u8>`.
    pub fn type_name(self) -> GraphText<'a> {
        self.graph.text(self.kind().type_name)
    }

    /// The coarse type.
    pub fn coarse_type(self) -> CoarseType {
        self.kind().coarse_type
    }

    /// The node's class; without a class, its type.
    pub(crate) fn class_id(self) -> GraphTextId {
        self.kind().class_name.unwrap_or(self.kind().type_name)
    }

    /// The most specific name of the node: its class; for a node without a class, its descriptive name; for a node
    /// without class and descriptive name, its type.
    pub fn title(self) -> GraphText<'a> {
        self.graph.text(self.title_id())
    }

    pub(crate) fn title_id(self) -> GraphTextId {
        let kind = self.kind();
        kind.class_name.or(kind.descriptive_name).unwrap_or(kind.type_name)
    }

    /// The name of an object's class; `None` for other nodes.
    pub fn class_name(self) -> Option<GraphText<'a>> {
        self.kind().class_name.map(|id| self.graph.text(id))
    }

    /// The file that a script comes from; `None` for other nodes.
    pub fn script_file_name(self) -> Option<GraphText<'a>> {
        self.kind().file_name.map(|id| self.graph.text(id))
    }

    /// A name that is more specific than the type, such as `DIV`.
    pub fn descriptive_type_name(self) -> Option<GraphText<'a>> {
        self.kind().descriptive_name.map(|id| self.graph.text(id))
    }

    /// The stack that allocated the node; `None` if it was not recorded or has no frames.
    pub fn allocation_stack(self) -> Option<AllocationStack<'a>> {
        let frame = self.kind().stack.filter(|frame| *frame != GraphFrameId::EMPTY_STACK);
        frame.map(|frame| AllocationStack { graph: self.graph, frame })
    }

    /// The node's edges, in the order of the graph.
    pub fn edges(self) -> impl ExactSizeIterator<Item = GraphEdge<'a>> {
        let graph = self.graph;
        graph.edge_range(self.index.0).map(move |edge| GraphEdge {
            name: graph.edge_name(edge).map(|id| graph.text(id)),
            referent: graph.node(NodeIndex(graph.referent(edge))),
        })
    }
}

impl fmt::Debug for HeapNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapNode")
            .field("id", &self.id().0)
            .field("type_name", &self.type_name())
            .field("shallow_size", &self.shallow_size())
            .finish_non_exhaustive()
    }
}

/// An edge of a node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GraphEdge<'a> {
    /// The name of the edge, such as the name of a field; `None` if it has no name.
    pub name: Option<GraphText<'a>>,
    /// The target of the edge.
    pub referent: HeapNode<'a>,
}

/// An allocation stack: its innermost frame, with access to its callers.
#[derive(Clone, Copy)]
pub struct AllocationStack<'a> {
    graph: &'a Graph,
    frame: GraphFrameId,
}

impl<'a> AllocationStack<'a> {
    pub(crate) fn parts(self) -> &'a FrameParts {
        self.graph.frames.get(self.frame)
    }

    /// The caller's frame; `None` for the outermost frame.
    pub fn parent(self) -> Option<Self> {
        self.parts().parent.map(|frame| Self { graph: self.graph, frame })
    }

    /// This frame and its callers, the innermost first.
    pub fn frames(self) -> impl Iterator<Item = Self> {
        core::iter::successors(Some(self), |frame| frame.parent())
    }

    /// The source file, or an address.
    pub fn source(self) -> GraphText<'a> {
        self.graph.text(self.parts().source)
    }

    /// The line, from 1; 0 if unknown.
    pub fn line(self) -> u32 {
        self.parts().line
    }

    /// The column, from 1; 0 if unknown.
    pub fn column(self) -> u32 {
        self.parts().column
    }

    /// The name of the function; `None` if it has no name.
    pub fn function(self) -> Option<GraphText<'a>> {
        self.parts().function.map(|id| self.graph.text(id))
    }

    /// Whether the frame belongs to the system, not to the program.
    pub fn is_system(self) -> bool {
        self.parts().is_system
    }

    /// Whether the frame belongs to the language's own library.
    pub fn is_self_hosted(self) -> bool {
        self.parts().is_self_hosted
    }
}

impl fmt::Debug for AllocationStack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(
                self.frames().map(|frame| (frame.source(), frame.line(), frame.column(), frame.function())),
            )
            .finish()
    }
}
