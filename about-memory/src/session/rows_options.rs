//! Which rows of an answer a front end takes.

use std::collections::HashSet;

use serde::Deserialize;

use super::column::{RowColumn, RowSort};
use super::query::GroupBy;

/// Which rows to take.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RowsOptions {
    /// The first row, from 0.
    pub start: usize,
    /// The number of rows; at most 500.
    pub count: usize,
    /// The rows that are open, by [`SessionRow::id`](super::SessionRow::id).
    pub open: HashSet<u64>,
    /// The rows that are open with all below them, as far as these are at most 10,000.
    pub open_below: HashSet<u64>,
    /// The rows that are closed although one above them is open with all below, or although a filter opens them.
    pub closed: HashSet<u64>,
    /// The levels that open by themselves, of the first 15 rows of each; at most 3.
    pub depth: usize,
    /// The order. By default the rows have the order of the tree: most bytes first.
    pub sort: Option<RowSort>,
    /// The breakdown that names nodes; the preset `label` by default.
    pub label: Option<GroupBy>,
}

impl RowsOptions {
    /// The first `count` rows, with nothing open.
    pub fn first(count: usize) -> Self {
        Self { count, ..Self::default() }
    }

    /// Sets [`start`](Self::start).
    #[must_use]
    pub fn start(self, start: usize) -> Self {
        Self { start, ..self }
    }

    /// Opens a row.
    #[must_use]
    pub fn open(mut self, id: u64) -> Self {
        self.open.insert(id);
        self
    }

    /// Opens a row and all below it.
    #[must_use]
    pub fn open_below(mut self, id: u64) -> Self {
        self.open_below.insert(id);
        self
    }

    /// Sets [`depth`](Self::depth).
    #[must_use]
    pub fn depth(self, levels: usize) -> Self {
        Self { depth: levels, ..self }
    }

    /// Closes a row that opens by itself.
    #[must_use]
    pub fn close(mut self, id: u64) -> Self {
        self.closed.insert(id);
        self
    }

    /// Sets [`sort`](Self::sort).
    #[must_use]
    pub fn sort(self, column: RowColumn, ascending: bool) -> Self {
        Self { sort: Some(RowSort { column, ascending }), ..self }
    }
}
