//! The rows of an answer that a front end requests.

use std::collections::HashSet;

use serde::Deserialize;

use super::column::{RowColumn, RowSort};
use super::query::GroupBy;

/// The choice of rows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RowsOptions {
    /// The first row, from 0.
    pub start: usize,
    /// The number of rows; at most 500.
    pub count: usize,
    /// The open rows, by [`SessionRow::id`](super::SessionRow::id).
    pub open: HashSet<u64>,
    /// The rows that are open with all rows below them. At most 10,000 rows open in this way.
    pub open_below: HashSet<u64>,
    /// The closed rows among the rows that `depth`, `open_below` or a filter opens.
    pub closed: HashSet<u64>,
    /// The number of levels that open by themselves, at most 3. Only the first 15 rows below each row open.
    pub depth: usize,
    /// The order of rows. Default: the order of the tree (the most bytes first).
    pub sort: Option<RowSort>,
    /// The breakdown that names nodes. Default: the preset `label`.
    pub label: Option<GroupBy>,
}

impl RowsOptions {
    /// Selects the first `count` rows, all closed.
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

    /// Opens a row and all rows below it.
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
