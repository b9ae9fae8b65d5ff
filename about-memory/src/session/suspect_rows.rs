//! Suspects as rows: nodes, and groups that open to their nodes.

use core::hash::{Hash as _, Hasher as _};
use std::hash::DefaultHasher;

use heap_graph::{DominatorTree, NodeIndex};

use super::answer::SuspectGroup;
use super::column::RowColumn;
use super::forest::RowForest;
use super::group_id::EXACT;

/// The suspects of a tree.
#[derive(Clone, Copy)]
pub(super) struct SuspectForest<'a> {
    pub(super) tree: &'a DominatorTree<'a>,
    pub(super) groups: &'a [SuspectGroup],
}

/// A row: a group of several nodes (by its index), or a node.
#[derive(Clone, Copy)]
pub(super) enum SuspectRow {
    Group(usize),
    Node(NodeIndex),
}

impl SuspectForest<'_> {
    fn group(&self, place: usize) -> SuspectRow {
        match self.groups[place].nodes.as_slice() {
            [node] => SuspectRow::Node(*node),
            _ => SuspectRow::Group(place),
        }
    }
}

impl RowForest for SuspectForest<'_> {
    type Node = SuspectRow;

    fn roots(&self) -> Vec<SuspectRow> {
        (0..self.groups.len()).map(|place| self.group(place)).collect()
    }

    fn below(&self, row: SuspectRow) -> Vec<SuspectRow> {
        match row {
            SuspectRow::Group(place) => {
                self.groups[place].nodes.iter().copied().map(SuspectRow::Node).collect()
            }
            SuspectRow::Node(_) => Vec::new(),
        }
    }

    fn id(&self, row: SuspectRow, _: u64) -> u64 {
        match row {
            SuspectRow::Group(place) => {
                let mut hasher = DefaultHasher::new();
                self.groups[place].class.hash(&mut hasher);
                hasher.finish() % EXACT
            }
            SuspectRow::Node(node) => self.tree.graph().node(node).id().0,
        }
    }

    fn number(&self, row: SuspectRow, column: RowColumn) -> i128 {
        let size = match (row, column) {
            (SuspectRow::Group(place), RowColumn::Shallow) => self.groups[place].shallow,
            (SuspectRow::Group(place), _) => self.groups[place].retained,
            (SuspectRow::Node(node), RowColumn::Shallow) => {
                u128::from(self.tree.graph().node(node).shallow_size())
            }
            (SuspectRow::Node(node), _) => self.tree.retained_size(node).unwrap_or_default(),
        };
        i128::try_from(size).unwrap_or(i128::MAX)
    }

    fn name(&self, row: SuspectRow) -> String {
        match row {
            SuspectRow::Group(place) => {
                let SuspectGroup { class, count, .. } = &self.groups[place];
                format!("{count} of {class}")
            }
            SuspectRow::Node(node) => self.tree.graph().node(node).title().to_string(),
        }
    }
}
