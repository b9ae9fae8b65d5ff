//! Views on a graph's nodes, edges and stacks.

use core::fmt;

use super::{Graph, Kind, NodeId, NodeIndex};
use crate::coarse_type::CoarseType;
use crate::frame::{FrameId, FrameParts};
use crate::text::{Text, TextId};

/// One node of a graph.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    graph: &'a Graph,
    index: NodeIndex,
}

impl<'a> Node<'a> {
    pub(super) fn new(graph: &'a Graph, index: NodeIndex) -> Self {
        Self { graph, index }
    }

    pub(crate) fn graph(self) -> &'a Graph {
        self.graph
    }

    /// Its place in the graph.
    pub fn index(self) -> NodeIndex {
        self.index
    }

    /// Its id.
    pub fn id(self) -> NodeId {
        NodeId(self.graph.ids[self.index.get()])
    }

    /// Bytes of the thing itself.
    pub fn shallow_size(self) -> u64 {
        self.graph.sizes[self.index.get()]
    }

    fn kind(self) -> &'a Kind {
        &self.graph.kinds[self.graph.kinds_of[self.index.get()] as usize]
    }

    /// Name of the concrete type, such as `JSString` or `alloc::vec::Vec<u8>`.
    pub fn type_name(self) -> Text<'a> {
        self.graph.text(self.kind().type_name)
    }

    /// What it is, roughly.
    pub fn coarse_type(self) -> CoarseType {
        self.kind().coarse_type
    }

    /// Its class or, without one, its type.
    pub(crate) fn class_id(self) -> TextId {
        self.kind().class_name.unwrap_or(self.kind().type_name)
    }

    /// The one name that tells most of it: class, descriptive name or type.
    pub fn title(self) -> Text<'a> {
        self.graph.text(self.title_id())
    }

    pub(crate) fn title_id(self) -> TextId {
        let kind = self.kind();
        kind.class_name.or(kind.descriptive_name).unwrap_or(kind.type_name)
    }

    /// Name of the class of an object.
    pub fn class_name(self) -> Option<Text<'a>> {
        self.kind().class_name.map(|id| self.graph.text(id))
    }

    /// The file that a script came from.
    pub fn script_file_name(self) -> Option<Text<'a>> {
        self.kind().file_name.map(|id| self.graph.text(id))
    }

    /// A name that tells more than the type, such as `DIV`.
    pub fn descriptive_type_name(self) -> Option<Text<'a>> {
        self.kind().descriptive_name.map(|id| self.graph.text(id))
    }

    /// Where it was allocated, if that was recorded.
    pub fn allocation_stack(self) -> Option<Stack<'a>> {
        self.kind().stack.map(|frame| Stack { graph: self.graph, frame })
    }

    /// Edges to other nodes, in the order of the graph.
    pub fn edges(self) -> impl ExactSizeIterator<Item = Edge<'a>> {
        let graph = self.graph;
        graph.edge_range(self.index.0).map(move |edge| Edge {
            name: graph.edge_name(edge).map(|id| graph.text(id)),
            referent: graph.node(NodeIndex(graph.referent(edge))),
        })
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.id().0)
            .field("type_name", &self.type_name())
            .field("shallow_size", &self.shallow_size())
            .finish_non_exhaustive()
    }
}

/// One edge.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Edge<'a> {
    /// Name of the field or the like; `None` if it has none.
    pub name: Option<Text<'a>>,
    /// Where it goes.
    pub referent: Node<'a>,
}

/// An allocation stack: its youngest frame, from which the others can be reached.
#[derive(Clone, Copy)]
pub struct Stack<'a> {
    graph: &'a Graph,
    frame: FrameId,
}

impl<'a> Stack<'a> {
    pub(crate) fn parts(self) -> &'a FrameParts {
        self.graph.frames.get(self.frame)
    }

    /// The caller's frame; `None` for the oldest.
    pub fn parent(self) -> Option<Self> {
        self.parts().parent.map(|frame| Self { graph: self.graph, frame })
    }

    /// This frame and its callers, youngest first.
    pub fn frames(self) -> impl Iterator<Item = Self> {
        core::iter::successors(Some(self), |frame| frame.parent())
    }

    /// The file or address.
    pub fn source(self) -> Text<'a> {
        self.graph.text(self.parts().source)
    }

    /// From 1; 0 if unknown.
    pub fn line(self) -> u32 {
        self.parts().line
    }

    /// From 1; 0 if unknown.
    pub fn column(self) -> u32 {
        self.parts().column
    }

    /// The function; `None` if it has no name.
    pub fn function(self) -> Option<Text<'a>> {
        self.parts().function.map(|id| self.graph.text(id))
    }

    /// Whether the frame belongs to the system and not to the program.
    pub fn is_system(self) -> bool {
        self.parts().is_system
    }

    /// Whether the frame belongs to the language's own library.
    pub fn is_self_hosted(self) -> bool {
        self.parts().is_self_hosted
    }
}

impl fmt::Debug for Stack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(
                self.frames().map(|frame| (frame.source(), frame.line(), frame.column(), frame.function())),
            )
            .finish()
    }
}
