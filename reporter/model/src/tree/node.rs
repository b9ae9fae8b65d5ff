//! One entry of a tree.

use core::fmt;

use crate::presence::Presence;
use crate::report::Units;

use super::node_data::{NONE, NodeData, NodeSource};
use super::process::ProcessTrees;

/// The name of the child that holds the amount reported for an inner node's own path.
///
/// Firefox drops that amount or shows no tree; here `explicit/a` = 5 and `explicit/a/b` = 3 give `explicit/a` = 8
/// with the children `(itself)` = 5 and `b` = 3.
pub const ITSELF: &str = "(itself)";

/// The name of [`ITSELF`] in a diff, as in Firefox: there its parent is usually a leaf in one set and an inner node
/// in the other.
pub const FAKE_CHILD: &str = "(fake child)";

/// The path of what two reporters counted, less than 0: with DMD, the unreported memory by crate contains none of it.
pub const COUNTED_TWICE: &str = "explicit/heap-unclassified/(counted twice)";

/// The path of what reporters said by amount, less than 0: with DMD, the unreported memory by crate still contains the
/// blocks, since no reporter named them.
pub const BY_AMOUNT: &str = "explicit/heap-unclassified/(reported by amount, blocks unknown)";

/// The mark of a leaf in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Only the second set has it: `+`.
    Added,
    /// Only the first set has it: `-`.
    Removed,
    /// It is a [`FAKE_CHILD`]: `!`.
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

/// A node of a tree, or a line of its own; cheap to copy.
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

    /// The whole path as reported. For [`ITSELF`] it is the path of the parent.
    pub fn path(self) -> &'a str {
        self.data().path
    }

    /// The amount: of a leaf its reports' sum, of an inner node the sum of its children.
    pub fn amount(self) -> i128 {
        self.data().amount
    }

    /// Whether the amount is negative by intention, so that unreported memory adds up: [`COUNTED_TWICE`] and
    /// [`BY_AMOUNT`].
    pub fn is_correction(self) -> bool {
        self.amount() < 0 && [COUNTED_TWICE, BY_AMOUNT].contains(&self.path())
    }

    /// Whether amounts are differences of two sets.
    pub fn is_diff(self) -> bool {
        self.process.is_diff()
    }

    /// In a diff the largest absolute amount of the node and all nodes below it; views sort a diff by it, since a
    /// sum of differences may be small. Otherwise the absolute amount of the node alone.
    pub fn largest_change(self) -> u128 {
        let below = self.process.largest_below.get(self.id as usize).copied().unwrap_or(0);
        below.max(self.amount().unsigned_abs())
    }

    /// The mark in a diff, if there is one.
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

    /// The `[N]` that Firefox shows: as [`reports`](Self::reports), but without the reports that come while the sum is
    /// 0. It is 0 where Firefox shows no number.
    pub fn merged(self) -> u32 {
        self.data().merged
    }

    /// The description of the first report, or `None` for an inner node and for
    /// `heap-unclassified`.
    pub fn description(self) -> Option<&'a str> {
        let data = self.data();
        (data.reports > 0).then(|| self.process.set.at(data.row as usize).description)
    }

    /// The index of the node's first report in the set; that of `heap-unclassified` is larger than all others. Views
    /// show nodes that are otherwise equal in this order.
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
