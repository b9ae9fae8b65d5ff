//! One node of a tree.

use core::fmt;

use crate::measure::block::Edge;
use crate::measure::size_summary::SizeSummary;
use crate::measure::stated::{STATED, stated_type};

use super::SizeTree;
use super::finish::SizeNodeData;

/// All parts of a value that have the same type and that the walk reaches by the same fields. Cheap to copy.
#[derive(Clone, Copy)]
pub struct SizeNode<'a> {
    pub(super) tree: &'a SizeTree,
    pub(super) id: usize,
}

impl<'a> SizeNode<'a> {
    fn data(self) -> &'a SizeNodeData {
        &self.tree.nodes[self.id]
    }

    /// The field's name, `Variant.field`, `(elements)`, `(keys)`, `(values)` or `(stated)`. For the root, the name of
    /// its type without modules. If one field leads to several types, as below a `dyn` value, the type follows, so
    /// that siblings have different names.
    pub fn name(self) -> &'a str {
        &self.data().name
    }

    /// The edge from the parent; `None` for the root.
    pub fn edge(self) -> Option<Edge> {
        self.data().edge
    }

    /// The type name, as returned by [`core::any::type_name`].
    pub fn type_name(self) -> &'static str {
        self.data().type_name
    }

    /// The number of parts in this node, including parts that own no heap.
    pub fn count(self) -> u64 {
        self.data().count
    }

    /// The sum of the blocks of these parts, without the blocks of their fields and elements.
    pub fn own(self) -> SizeSummary {
        self.data().own
    }

    /// The sum of the blocks of these parts and of all nodes below.
    pub fn total(self) -> SizeSummary {
        self.data().total
    }

    /// The node's level: 0 for the root.
    pub fn depth(self) -> usize {
        self.data().depth
    }

    /// The children, ordered by bytes, the largest first, then by name.
    pub fn children(self) -> impl Iterator<Item = SizeNode<'a>> {
        let (tree, end) = (self.tree, self.data().end);
        let node = move |id: usize| (id < end).then_some(SizeNode { tree, id });
        core::iter::successors(node(self.id + 1), move |child| node(child.data().end))
    }

    /// Whether the node has no children.
    pub fn is_leaf(self) -> bool {
        self.data().end == self.id + 1
    }

    /// The types in and below this node whose values state their own bytes, and these bytes.
    pub(crate) fn stated(self) -> Vec<(&'static str, usize)> {
        let nodes = &self.tree.nodes[self.id..self.end()];
        let stated = nodes.iter().filter(|node| node.edge == Some(STATED));
        stated.map(|node| (stated_type(node.type_name), node.own.usable)).collect()
    }

    pub(super) fn end(self) -> usize {
        self.data().end
    }
}

impl fmt::Debug for SizeNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SizeNode")
            .field("name", &self.name())
            .field("type_name", &self.type_name())
            .field("count", &self.count())
            .field("own", &self.own())
            .field("total", &self.total())
            .finish_non_exhaustive()
    }
}
