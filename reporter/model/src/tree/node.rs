//! One entry of a tree.

use core::fmt;

use crate::presence::Presence;
use crate::report::Units;

use super::node_data::{NONE, NodeData, NodeSource};
use super::process::ProcessTrees;

/// The name of the child with the amount that was reported for the path of an inner node itself.
///
/// Firefox drops that amount or shows no tree. Here, `explicit/a` = 5 and `explicit/a/b` = 3 give `explicit/a` = 8
/// with the children `(itself)` = 5 and `b` = 3.
pub const ITSELF: &str = "(itself)";

/// The name of [`ITSELF`] in a diff, as in Firefox. In a diff, the parent is usually a leaf in one set and an inner
/// node in the other set.
pub const FAKE_CHILD: &str = "(fake child)";

/// The path of a report with a negative amount: minus the memory that two reporters counted. With DMD, the unreported
/// memory by crate does not contain this memory.
pub const COUNTED_TWICE: &str = "explicit/heap-unclassified/(counted twice)";

/// The path of a report with a negative amount: minus the memory that reporters reported by amount. With DMD, the
/// unreported memory by crate still contains the blocks of this memory, since no reporter named them.
pub const BY_AMOUNT: &str = "explicit/heap-unclassified/(reported by amount, blocks unknown)";

/// The mark of a leaf in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Only the second set contains the leaf: `+`.
    Added,
    /// Only the first set contains the leaf: `-`.
    Removed,
    /// The leaf is a [`FAKE_CHILD`]: `!`.
    Fake,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "+",
            Self::Removed => "-",
            Self::Fake => "!",
        })
    }
}

/// A node of a tree, or a line (a report whose path has no `/`). Cheap to copy.
#[derive(Clone, Copy)]
pub struct TreeNode<'f, 'a> {
    pub(super) process: &'f ProcessTrees<'a>,
    pub(super) id: u32,
}

impl<'f, 'a> TreeNode<'f, 'a> {
    fn data(self) -> &'f NodeData<'a> {
        &self.process.nodes[self.id as usize]
    }

    /// The name below the parent, as reported (`\` for a `/` inside a name). It contains a `/` if the node is a
    /// merged chain of nodes with one child each.
    pub fn name(self) -> &'a str {
        let data = self.data();
        match data.source {
            NodeSource::Itself if self.process.is_diff() => FAKE_CHILD,
            NodeSource::Itself => ITSELF,
            _ => &data.path[data.start as usize..],
        }
    }

    /// The whole path as reported. For [`ITSELF`], returns the path of the parent.
    pub fn path(self) -> &'a str {
        self.data().path
    }

    /// The amount. For a leaf, it is the sum of its reports; for an inner node, the sum of its children.
    pub fn amount(self) -> i128 {
        self.data().amount
    }

    /// Whether a negative amount is intended, so that the sum of the unreported memory is right: [`COUNTED_TWICE`]
    /// and [`BY_AMOUNT`].
    pub fn is_correction(self) -> bool {
        self.amount() < 0 && [COUNTED_TWICE, BY_AMOUNT].contains(&self.path())
    }

    /// Whether amounts are differences of two sets.
    pub fn is_diff(self) -> bool {
        self.process.is_diff()
    }

    /// In a diff, the largest absolute amount of the node and all nodes below it. Views sort a diff by this amount,
    /// since a sum of differences may be small. Without a diff, the absolute amount of the node alone.
    pub fn largest_change(self) -> u128 {
        let below = self.process.largest_below.get(self.id as usize).copied().unwrap_or(0);
        below.max(self.amount().unsigned_abs())
    }

    /// The mark of a leaf in a diff; `None` for every other node.
    pub fn mark(self) -> Option<Mark> {
        let data = self.data();
        match (data.source, data.presence) {
            (NodeSource::Itself, _) if self.process.is_diff() => Some(Mark::Fake),
            (_, Presence::FirstOnly) => Some(Mark::Removed),
            (_, Presence::SecondOnly) => Some(Mark::Added),
            (_, Presence::Both) => None,
        }
    }

    /// The units, the same in the whole tree.
    pub fn units(self) -> Units {
        self.data().units
    }

    /// The number of reports with exactly this path; 0 for an inner node and for `heap-unclassified`.
    pub fn reports(self) -> u32 {
        self.data().reports
    }

    /// The `[N]` that Firefox shows: one more than the number of reports that were added while the sum of the earlier
    /// reports was not 0. It is 0 if there are no such reports; Firefox then shows no number.
    pub fn merged(self) -> u32 {
        self.data().merged
    }

    /// The description of the first report, or `None` for an inner node and for
    /// `heap-unclassified`.
    pub fn description(self) -> Option<&'a str> {
        let data = self.data();
        (data.reports > 0).then(|| self.process.set.at(data.row as usize).description)
    }

    /// The index of the node's first report in the set. The index of `heap-unclassified` is larger than all others.
    /// Views use this order for nodes that are otherwise equal.
    pub fn first_report(self) -> u32 {
        self.data().row
    }

    pub(super) fn is_itself(self) -> bool {
        self.data().source == NodeSource::Itself
    }

    /// Whether the node has no children.
    pub fn is_leaf(self) -> bool {
        self.data().first_child == NONE
    }

    /// The children, in no particular order.
    pub fn children(self) -> impl Iterator<Item = TreeNode<'f, 'a>> {
        let process = self.process;
        let link = |id: u32| (id != NONE).then_some(TreeNode { process, id });
        core::iter::successors(link(self.data().first_child), move |node| link(node.data().next))
    }
}

impl fmt::Debug for TreeNode<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeNode")
            .field("path", &self.path())
            .field("name", &self.name())
            .field("amount", &self.amount())
            .finish_non_exhaustive()
    }
}
