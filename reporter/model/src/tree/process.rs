//! The trees and lines of one process.

use core::fmt;
use std::borrow::Cow;

use crate::report_set::ReportSet;

use super::node_data::NodeData;

/// One process: its trees, and its lines (reports whose path has no `/`).
pub struct ProcessTrees<'a> {
    pub(super) set: &'a ReportSet,
    pub(super) name: Cow<'a, str>,
    pub(super) resident: Option<i64>,
    pub(super) resident_unique: Option<i64>,
    pub(super) nodes: Vec<NodeData<'a>>,
    /// In a diff, the largest absolute amount below each node; otherwise empty.
    pub(super) largest_below: Vec<u128>,
    pub(super) trees: Vec<u32>,
    pub(super) lines: Vec<u32>,
}

impl<'a> ProcessTrees<'a> {
    /// The name, never empty.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last `resident` amount in bytes, even if the filter rejects it. `None` without such a report.
    pub fn resident(&self) -> Option<i64> {
        self.resident
    }

    /// The last `resident-unique` amount in bytes, even if the filter rejects it. `None` without such a report.
    pub fn resident_unique(&self) -> Option<i64> {
        self.resident_unique
    }

    /// Whether amounts are differences; see [`ReportSet::is_diff`].
    pub fn is_diff(&self) -> bool {
        self.set.is_diff()
    }

    /// Whether the process has neither trees nor lines.
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty() && self.lines.is_empty()
    }
}

impl fmt::Debug for ProcessTrees<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessTrees")
            .field("name", &self.name)
            .field("trees", &self.trees.len())
            .field("lines", &self.lines.len())
            .field("nodes", &self.nodes.len())
            .finish_non_exhaustive()
    }
}
