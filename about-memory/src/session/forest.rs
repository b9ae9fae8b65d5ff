//! Trees as rows: what is open, in order, and a window of it.

use core::cmp::Reverse;
use std::collections::HashSet;

use super::column::{RowColumn, RowSort};
use super::rows_options::RowsOptions;

/// The most rows that open without being named.
const MOST_OPEN: usize = 10_000;
/// The rows of a level that open by their depth, since Firefox fetches 15 rows at a time, and the most levels of them.
const FIRST: usize = 15;
const MAX_DEPTH: usize = 3;

/// Something with rows below rows.
pub(super) trait RowForest {
    type Node: Copy;
    fn roots(&self) -> Vec<Self::Node>;
    fn below(&self, node: Self::Node) -> Vec<Self::Node>;
    fn id(&self, node: Self::Node, parent: u64) -> u64;
    fn number(&self, node: Self::Node, column: RowColumn) -> i128;
    fn name(&self, node: Self::Node) -> String;

    /// The roots in this order, if they are kept: there may be millions, and each window asks for them.
    fn sorted_roots(&self, _sort: RowSort) -> Option<Vec<Self::Node>> {
        None
    }

    /// Whether all rows are open except those that the reader closed.
    fn is_open(&self) -> bool {
        false
    }
}

/// A row before it has a name and numbers.
pub(super) struct RowPlace<N> {
    pub(super) node: N,
    pub(super) level: usize,
    /// The place of the row around it, from 0.
    pub(super) parent: Option<usize>,
    pub(super) id: u64,
    pub(super) is_open: bool,
}

/// Rows of one level that are still to come.
struct RowLevel<N> {
    nodes: std::vec::IntoIter<N>,
    /// How many of them have come.
    come: usize,
    parent: u64,
    /// The place of their parent.
    place: Option<usize>,
    /// Whether they open by themselves.
    all: bool,
}

/// Puts nodes of one level in order.
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

/// The rows in sight, and the number of all.
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
        // Nothing is below a leaf, so it is not open: Left leads from it to the row around it.
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
