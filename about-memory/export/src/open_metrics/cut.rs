//! Selects the paths that have a series of their own.
//!
//! The tree grows from its root: the largest waiting path gets a series, until the limit is reached. If a path below a
//! path P gets a series, P has no series of its own. Instead, the series `P/(other)` has the sum of the reports below P
//! that no other series contains. So each report counts once.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use memory_report::{Kind, Units};

use super::OpenMetricsOptions;

/// The last name in the path of a series that has the remaining reports of a subtree.
const OTHER: &str = "(other)";

/// One report, or several reports with the same path.
#[derive(Clone, Debug)]
pub(super) struct ReportLeaf {
    pub(super) process: String,
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) units: Units,
    pub(super) amount: i128,
    /// Whether the leaf has a series whatever its amount is.
    pub(super) always: bool,
}

/// An amount with its labels. The label of the process is already escaped.
#[derive(Clone, Debug)]
pub(super) struct MetricSeries {
    pub(super) process: String,
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) units: Units,
    pub(super) amount: i128,
}

pub(super) struct CutReports {
    /// The series, sorted by process, path and kind, without duplicates.
    pub(super) series: Vec<MetricSeries>,
    /// The number of reports that no series contains.
    pub(super) omitted: usize,
}

/// A path and the paths below it, for one process, unit and kind.
struct PathNode {
    /// The first leaf below the path, and the end of the path in that leaf's path.
    leaf: usize,
    end: usize,
    depth: usize,
    parent: usize,
    children: Vec<usize>,
    amount: i128,
    /// The sum of the absolute amounts. Positive and negative amounts do not cancel out in it.
    magnitude: u128,
    leaves: usize,
    always: bool,
    /// The number of children that are shown.
    shown_children: usize,
    /// The sum of the shown children, and the number of leaves in them.
    of_shown: (i128, usize),
    shown: bool,
}

pub(super) fn cut(mut leaves: Vec<ReportLeaf>, options: &OpenMetricsOptions) -> CutReports {
    fn key(leaf: &ReportLeaf) -> (Units, Kind, &str, &str) {
        (leaf.units, leaf.kind, &leaf.process, &leaf.path)
    }
    // Sorted by names, so that all leaves below a path are neighbors.
    leaves.sort_unstable_by(|a, b| {
        let group = |leaf: &ReportLeaf| (leaf.units, leaf.kind);
        group(a)
            .cmp(&group(b))
            .then_with(|| a.process.cmp(&b.process))
            .then_with(|| a.path.split('/').cmp(b.path.split('/')))
    });
    leaves.dedup_by(|next, kept| {
        let same = key(next) == key(kept);
        if same {
            kept.amount += next.amount;
            kept.always |= next.always;
        }
        same
    });
    let (nodes, roots) = tree(&leaves);
    let mut growth = PathGrowth { nodes, options, waiting: BinaryHeap::new(), series: 0 };
    growth.grow(&roots);
    let PathGrowth { nodes, .. } = growth;
    let mut cut = CutReports { series: Vec::new(), omitted: 0 };
    for node in nodes.iter().filter(|node| node.shown) {
        let leaf = &leaves[node.leaf];
        let rest = node.leaves - node.of_shown.1;
        if rest == 0 {
            continue;
        }
        let path = &leaf.path[..node.end];
        let path = match (node.end, node.shown_children) {
            (0, _) => OTHER.to_owned(),
            (_, 0) => path.to_owned(),
            _ => format!("{path}/{OTHER}"),
        };
        if path == OTHER && leaf.units == Units::Percentage {
            // The sum of percentages is not a percentage.
            cut.omitted += rest;
            continue;
        }
        cut.series.push(MetricSeries {
            process: leaf.process.clone(),
            path,
            kind: leaf.kind,
            units: leaf.units,
            amount: node.amount - node.of_shown.0,
        });
    }
    cut.series.sort_by(|a, b| (&a.process, &a.path, a.kind).cmp(&(&b.process, &b.path, b.kind)));
    // A report may itself be named `(other)`.
    cut.series.dedup_by(|next, kept| {
        let same = (&next.process, &next.path, next.kind, next.units)
            == (&kept.process, &kept.path, kept.kind, kept.units);
        if same {
            kept.amount += next.amount;
        }
        same
    });
    cut
}

/// The nodes of sorted leaves, each after its parent. Also the roots: one for each process, unit and kind.
fn tree(leaves: &[ReportLeaf]) -> (Vec<PathNode>, Vec<usize>) {
    let mut nodes: Vec<PathNode> = Vec::new();
    let mut roots = Vec::new();
    // The nodes from the root to the last leaf.
    let mut open: Vec<usize> = Vec::new();
    for (index, leaf) in leaves.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &leaves[before]);
        let same = before.is_some_and(|before| {
            (before.units, before.kind, &before.process) == (leaf.units, leaf.kind, &leaf.process)
        });
        let mut add = |nodes: &mut Vec<PathNode>, parent: usize, end: usize, depth: usize| {
            let number = nodes.len();
            nodes.push(PathNode {
                leaf: index,
                end,
                depth,
                parent,
                children: Vec::new(),
                amount: 0,
                magnitude: 0,
                leaves: 0,
                always: false,
                shown_children: 0,
                of_shown: (0, 0),
                shown: false,
            });
            if depth > 0 {
                nodes[parent].children.push(number);
            } else {
                roots.push(number);
            }
            number
        };
        if !same {
            open.clear();
            open.push(add(&mut nodes, 0, 0, 0));
        }
        let is_on_path = |node: &PathNode| {
            let path = &leaves[node.leaf].path[..node.end];
            let rest = leaf.path.strip_prefix(path);
            node.end == 0 || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        while !is_on_path(&nodes[open[open.len() - 1]]) {
            open.pop();
        }
        loop {
            let last = open[open.len() - 1];
            let PathNode { end, depth, .. } = nodes[last];
            if depth > 0 && end >= leaf.path.len() {
                break;
            }
            let start = if depth == 0 { 0 } else { end + 1 };
            // An empty name is joined with the next name.
            let name = start + usize::from(leaf.path[start..].starts_with('/'));
            let end = leaf.path[name..].find('/').filter(|_| depth < MOST_DEPTH);
            let end = end.map_or(leaf.path.len(), |at| name + at);
            open.push(add(&mut nodes, last, end, depth + 1));
        }
        for node in &open {
            let node = &mut nodes[*node];
            node.amount += leaf.amount;
            node.magnitude += leaf.amount.unsigned_abs();
            node.leaves += 1;
            node.always |= leaf.always;
        }
    }
    (nodes, roots)
}

/// The maximum depth of a path. In a deeper path, all names from this depth on count as one name.
const MOST_DEPTH: usize = 100;

struct PathGrowth<'a> {
    nodes: Vec<PathNode>,
    options: &'a OpenMetricsOptions,
    /// The waiting nodes: first the nodes that must be shown, then all others. In each group, the largest node is
    /// first, and equal nodes are in the order of their indices.
    waiting: BinaryHeap<(bool, u128, Reverse<usize>)>,
    series: usize,
}

impl PathGrowth<'_> {
    fn grow(&mut self, roots: &[usize]) {
        // Each root gets a series that represents all paths below it, so each report is in a series.
        for root in roots {
            self.nodes[*root].shown = true;
            self.series += 1;
        }
        for root in roots {
            self.wait(*root);
        }
        while let Some((always, _, Reverse(node))) = self.waiting.pop() {
            let parent = self.nodes[node].parent;
            let (amount, leaves) = (self.nodes[node].amount, self.nodes[node].leaves);
            let rest = self.nodes[parent].leaves - self.nodes[parent].of_shown.1 - leaves;
            // If all other leaves of the parent are in shown children, the series replaces the parent's `(other)`.
            let more = usize::from(rest > 0);
            if self.series + more > self.options.max_series && !always {
                continue;
            }
            self.series += more;
            let parent = &mut self.nodes[parent];
            parent.of_shown.0 += amount;
            parent.of_shown.1 += leaves;
            parent.shown_children += 1;
            self.nodes[node].shown = true;
            self.wait(node);
        }
    }

    /// Adds those children of a shown node that may have series of their own.
    fn wait(&mut self, node: usize) {
        for child in self.nodes[node].children.clone() {
            let PathNode { depth, magnitude, always, .. } = self.nodes[child];
            let whole = self.nodes[self.top(child)].magnitude;
            let is_large = magnitude as f64 >= whole as f64 * self.options.threshold / 100.0;
            if depth <= self.options.depth.max(1) || is_large || always {
                self.waiting.push((always, magnitude, Reverse(child)));
            }
        }
    }

    /// The node of the first name of a path.
    fn top(&self, mut node: usize) -> usize {
        while self.nodes[node].depth > 1 {
            node = self.nodes[node].parent;
        }
        node
    }
}
