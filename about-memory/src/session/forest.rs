//! Makes rows from trees: the open rows in order, and a window of them.

use core::cmp::Reverse;
use std::collections::HashSet;

use super::column::{RowColumn, RowSort};
use super::rows_options::RowsOptions;

/// A filter or `open_below`, which open all rows of a tree, open at most this many rows.
const MOST_OPEN: usize = 10_000;
/// The option `depth` opens only this many of the rows below one row. Firefox fetches 15 rows at a time.
const FIRST: usize = 15;
/// The option `depth` opens at most this many levels.
const MAX_DEPTH: usize = 3;

/// A tree whose nodes become rows.
pub(super) trait RowForest {
    type Node: Copy;
    fn roots(&self) -> Vec<Self::Node>;
    fn below(&self, node: Self::Node) -> Vec<Self::Node>;
    fn id(&self, node: Self::Node, parent: u64) -> u64;
    fn number(&self, node: Self::Node, column: RowColumn) -> i128;
    fn name(&self, node: Self::Node) -> String;

    /// Returns the roots in this order if the order is stored. There may be millions of roots, and each window needs
    /// them.
    fn sorted_roots(&self, _sort: RowSort) -> Option<Vec<Self::Node>> {
        None
    }

    /// Whether all rows are open, except the rows that the reader closed.
    fn is_open(&self) -> bool {
        false
    }
}

/// A row before it has a name and numbers.
pub(super) struct RowPlace<N> {
    pub(super) node: N,
    pub(super) level: usize,
    /// The index of the parent row, from 0.
    pub(super) parent: Option<usize>,
    pub(super) id: u64,
    pub(super) is_open: bool,
}

/// The rows of one level that are not visited yet.
struct RowLevel<N> {
    nodes: std::vec::IntoIter<N>,
    /// The number of visited rows of this level.
    come: usize,
    parent: u64,
    /// The index of the parent row among all rows.
    place: Option<usize>,
    /// Whether the rows open by themselves.
    all: bool,
}

/// Sorts nodes of one level.
pub(super) fn sort_nodes<F: RowForest>(forest: &F, nodes: &mut [F::Node], sort: RowSort) {
    match sort {
        RowSort { column: RowColumn::Name, ascending } => {
            nodes.sort_by_cached_key(|node| forest.name(*node));
            if !ascending {
                nodes.reverse();
            }
        }
        RowSort { column, ascending: true } => nodes.sort_by_cached_key(|node| forest.number(*node, column)),
        RowSort { column, ascending: false } => {
            nodes.sort_by_cached_key(|node| Reverse(forest.number(*node, column)));
        }
    }
}

/// Returns the rows of the window, and the number of all rows.
pub(super) fn flatten<F: RowForest>(forest: &F, options: &RowsOptions) -> (Vec<RowPlace<F::Node>>, usize) {
    let sorted = |mut nodes: Vec<F::Node>| {
        if let Some(sort) = options.sort {
            sort_nodes(forest, &mut nodes, sort);
        }
        nodes.into_iter()
    };
    let kept = options.sort.and_then(|sort| forest.sorted_roots(sort));
    let roots = kept.map_or_else(|| sorted(forest.roots()), Vec::into_iter);
    let range = options.start..options.start.saturating_add(options.count);
    let has = |ids: &HashSet<u64>, id| !ids.is_empty() && ids.contains(&id);
    let is_closed = options.open.is_empty() && options.open_below.is_empty() && !forest.is_open();
    let (mut rows, mut total, mut opened) = (Vec::new(), 0, 0);
    let mut stack = vec![RowLevel { nodes: roots, come: 0, parent: 0, place: None, all: forest.is_open() }];
    while let Some((level, here)) = stack.len().checked_sub(1).zip(stack.last_mut()) {
        let Some(node) = here.nodes.next() else {
            stack.pop();
            continue;
        };
        let place = total;
        let is_shown = range.contains(&place);
        total += 1;
        here.come += 1;
        let by_depth = level < options.depth.min(MAX_DEPTH) && here.come <= FIRST;
        if is_closed && !is_shown && !by_depth {
            continue;
        }
        let id = forest.id(node, here.parent);
        let all = here.all || has(&options.open_below, id);
        let by_itself = (by_depth || all && opened < MOST_OPEN) && !has(&options.closed, id);
        let below = if has(&options.open, id) || by_itself { forest.below(node) } else { Vec::new() };
        // A leaf is never open, so that the key Left moves from the leaf to its parent row.
        let is_open = !below.is_empty();
        if is_shown {
            rows.push(RowPlace { node, level, parent: here.place, id, is_open });
        }
        if is_open {
            opened += 1;
            stack.push(RowLevel { nodes: sorted(below), come: 0, parent: id, place: Some(place), all });
        }
    }
    (rows, total)
}
