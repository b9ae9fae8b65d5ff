//! One node of a tree.

use core::fmt;

use crate::reading::Edge;
use crate::size_summary::SizeSummary;

use super::SizeTree;
use super::finish::NodeData;

/// All parts of a value that are reached by the same fields and have the same type; cheap to copy.
#[derive(Clone, Copy)]
pub struct SizeNode<'a> {
    pub(super) tree: &'a SizeTree,
    pub(super) id: usize,
}

impl<'a> SizeNode<'a> {
    fn data(self) -> &'a NodeData {
        &self.tree.nodes[self.id]
    }

    /// The field's name, `Variant.field`, `(elements)`, `(keys)` or `(values)`; of the root its type
    /// without modules. Where one field leads to several types, as below a `dyn` value, the type follows:
    /// siblings have different names.
    pub fn name(self) -> &'a str {
        &self.data().name
    }

    /// How the walk got here from the parent; `None` for the root.
    pub fn edge(self) -> Option<Edge> {
        self.data().edge
    }

    /// The type, as [`core::any::type_name`] gives it.
    pub fn type_name(self) -> &'static str {
        self.data().type_name
    }

    /// How many parts are merged here, those that own nothing included.
    pub fn count(self) -> u64 {
        self.data().count
    }

    /// The blocks of these parts themselves, without what their fields and elements own.
    pub fn own(self) -> SizeSummary {
        self.data().own
    }

    /// The blocks of these parts and of all that is below.
    pub fn total(self) -> SizeSummary {
        self.data().total
    }

    /// How far below the root; the root has 0.
    pub fn depth(self) -> usize {
        self.data().depth
    }

    /// The nodes below, the largest first, then by name.
    pub fn children(self) -> impl Iterator<Item = SizeNode<'a>> {
        let (tree, end) = (self.tree, self.data().end);
        let node = move |id: usize| (id < end).then_some(SizeNode { tree, id });
        core::iter::successors(node(self.id + 1), move |child| node(child.data().end))
    }

    /// Whether there is nothing below.
    pub fn is_leaf(self) -> bool {
        self.data().end == self.id + 1
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
