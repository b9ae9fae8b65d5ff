//! Builds the trees of one process: it sorts the paths, then makes one pass with a stack of open prefixes.
//!
//! Invariant of the stack when the pass opens a leaf: each entry's prefix ends before a `/` of the leaf's path, and
//! is a proper prefix of the next entry's prefix. A node's amount is final when its entry is popped, and is then added
//! to its parent.

use std::borrow::Cow;

use crate::presence::Presence;
use crate::report::{Kind, Report, Units};
use crate::report_set::ReportSet;
use crate::warning::{Warning, WarningKind};

use super::node_data::{NONE, NodeData, NodeSource};
use super::path_order::path_order;
use super::process::ProcessTrees;

/// The largest number of warnings from a builder. The builder counts further warnings, but does not keep them.
const MAX_WARNINGS: usize = 1000;
const HEAP_UNCLASSIFIED: &str = "explicit/heap-unclassified";

/// The reports of one process.
pub(super) struct TreeBuilder<'a> {
    process: ProcessTrees<'a>,
    paths: Vec<&'a str>,
    rows: Vec<u32>,
}

impl<'a> TreeBuilder<'a> {
    pub(super) fn new(set: &'a ReportSet, name: Cow<'a, str>) -> Self {
        let process = ProcessTrees {
            set,
            name,
            resident: None,
            resident_unique: None,
            nodes: Vec::new(),
            largest_below: Vec::new(),
            trees: Vec::new(),
            lines: Vec::new(),
        };
        Self { process, paths: Vec::new(), rows: Vec::new() }
    }

    pub(super) fn name(&self) -> &str {
        &self.process.name
    }

    /// Records the amount of a `resident` report, even if the filter rejects the report.
    pub(super) fn see(&mut self, report: &Report<'a>) {
        match report.path {
            "resident" => self.process.resident = Some(report.amount),
            "resident-unique" => self.process.resident_unique = Some(report.amount),
            _ => {}
        }
    }

    pub(super) fn add(&mut self, row: u32, report: &Report<'a>) {
        self.paths.push(report.path);
        self.rows.push(row);
    }

    pub(super) fn finish(self) -> (ProcessTrees<'a>, Vec<Warning>) {
        let Self { process, paths, rows } = self;
        let order = path_order(&paths);
        let mut pass = TreePass { process, open: Vec::new(), heap: 0, dropped: DroppedReports::default() };
        let mut order = order.as_slice();
        while let Some(&first) = order.first() {
            let path = paths[first as usize];
            let root = path.find('/');
            let same = |i: &u32| match root {
                Some(end) => {
                    let other = paths[*i as usize].as_bytes();
                    other.len() > end && other[..=end] == path.as_bytes()[..=end]
                }
                None => paths[*i as usize] == path,
            };
            let len = 1 + order[1..].iter().take_while(|i| same(i)).count();
            let (group, rest) = order.split_at(len);
            match root {
                Some(end) => pass.tree(end, group, &paths, &rows),
                None => pass.line(path, group, &rows),
            }
            order = rest;
        }
        pass.add_heap_unclassified();
        pass.process.nodes.shrink_to_fit();
        pass.process.largest_below.shrink_to_fit();
        let warnings = pass.dropped.finish(&pass.process.name);
        (pass.process, warnings)
    }
}

#[derive(Clone, Copy)]
struct UnfinishedNode {
    node: u32,
    end: usize,
    last_child: u32,
}

struct TreePass<'a> {
    process: ProcessTrees<'a>,
    open: Vec<UnfinishedNode>,
    /// The sum of all HEAP reports under `explicit/`, in bytes.
    heap: i128,
    dropped: DroppedReports,
}

/// The sum of the reports of one path.
#[derive(Default)]
struct PathSum {
    amount: i128,
    reports: u32,
    merged: u32,
    presence: Presence,
}

impl PathSum {
    /// Adds a report. As in Firefox, `merged` counts the report only if the sum of the earlier reports is not 0. The
    /// first such report counts twice, for the earlier reports.
    fn add(&mut self, amount: i64, presence: Presence) {
        if self.amount != 0 {
            self.merged = self.merged.max(1).saturating_add(1);
        }
        // A leaf that both sets contain has no mark, even if the reports differ.
        let alone = self.reports == 0 || self.presence == presence;
        self.presence = if alone { presence } else { Presence::Both };
        self.amount += i128::from(amount);
        self.reports = self.reports.saturating_add(1);
    }
}

impl<'a> TreePass<'a> {
    /// Adds a path without `/`. As in Firefox, the units of its first report apply; the units of its other reports are
    /// not compared.
    fn line(&mut self, path: &'a str, group: &[u32], rows: &[u32]) {
        let mut sum = PathSum::default();
        for &i in group {
            let (set, row) = (self.process.set, rows[i as usize] as usize);
            sum.add(set.at(row).amount, set.presence_at(row));
        }
        let row = rows[group[0] as usize];
        let units = self.process.set.at(row as usize).units;
        let line = self.leaf(path, 0, row, units, sum);
        self.process.lines.push(line);
    }

    /// Adds all reports under one root, in path order. The units of the tree are the units of the report that is
    /// first in the set. The tree `explicit` always has bytes.
    fn tree(&mut self, root_end: usize, group: &[u32], paths: &[&'a str], rows: &[u32]) {
        let set = self.process.set;
        let explicit = paths[group[0] as usize].starts_with("explicit/");
        let units = if explicit {
            Units::Bytes
        } else {
            let first = group.iter().copied().min().unwrap_or(group[0]);
            set.at(rows[first as usize] as usize).units
        };
        let mut last: Option<&'a str> = None;
        let mut group = group;
        while let Some(&first) = group.first() {
            let path = paths[first as usize];
            let len = 1 + group[1..].iter().take_while(|i| paths[**i as usize] == path).count();
            let (same, rest) = group.split_at(len);
            group = rest;
            let mut sum = PathSum::default();
            let mut first_row = NONE;
            for &i in same {
                let row = rows[i as usize];
                let report = set.at(row as usize);
                if explicit && report.kind == Kind::Other {
                    self.dropped.add(path, "kind OTHER is not allowed under explicit/");
                } else if report.units != units {
                    self.dropped.add(path, &format!("units {} in a tree of {units}", report.units));
                } else {
                    sum.add(report.amount, set.presence_at(row as usize));
                    first_row = first_row.min(row);
                    if explicit && report.kind == Kind::Heap {
                        self.heap += i128::from(report.amount);
                    }
                }
            }
            if sum.reports == 0 {
                continue;
            }
            match last {
                None => {
                    let root = self.inner(&path[..root_end], 0, first_row, units);
                    self.process.trees.push(root);
                    self.open.push(UnfinishedNode { node: root, end: root_end, last_child: NONE });
                }
                Some(last) => self.close_down_to(common_prefix(last, path)),
            }
            self.open_leaf(path, first_row, units, sum);
            last = Some(path);
        }
        self.close_all();
    }

    fn open_leaf(&mut self, path: &'a str, row: u32, units: Units, sum: PathSum) {
        let Some(parent) = self.open.last().copied() else { return };
        if self.process.nodes[parent.node as usize].reports > 0 {
            self.move_amount_into_child(parent);
        }
        let start = offset(parent.end + 1);
        let leaf = self.leaf(path, start, row, units, sum);
        self.attach(leaf);
        self.open.push(UnfinishedNode { node: leaf, end: path.len(), last_child: NONE });
    }

    /// Moves the amount of a leaf into a new child, when the leaf gets children.
    fn move_amount_into_child(&mut self, parent: UnfinishedNode) {
        let leaf = self.process.nodes[parent.node as usize];
        // In a diff, the parent keeps the count `[N]`, as in Firefox.
        let (above, below) = if self.process.is_diff() { (leaf.merged, 0) } else { (0, leaf.merged) };
        let child = self.push(NodeData { source: NodeSource::Itself, merged: below, ..leaf });
        let node = &mut self.process.nodes[parent.node as usize];
        (node.reports, node.merged, node.presence) = (0, above, Presence::Both);
        self.tell_largest(parent.node, child);
        self.attach(child);
    }

    /// Makes `child` the last child of the innermost open node.
    fn attach(&mut self, child: u32) {
        let row = self.process.nodes[child as usize].row;
        let Some(parent) = self.open.last_mut() else { return };
        let before = core::mem::replace(&mut parent.last_child, child);
        let parent = parent.node as usize;
        match before {
            NONE => self.process.nodes[parent].first_child = child,
            before => self.process.nodes[before as usize].next = child,
        }
        let parent = &mut self.process.nodes[parent];
        parent.row = parent.row.min(row);
    }

    /// Closes the open nodes that do not contain the next path. The next path shares its first `end` bytes with the
    /// last path.
    fn close_down_to(&mut self, end: usize) {
        while let Some(top) = self.open.pop_if(|top| top.end > end) {
            let parent = self.open.last().copied();
            match parent {
                Some(parent) if parent.end < end => self.split(top, end),
                _ => self.add_to_parent(top),
            }
        }
    }

    fn close_all(&mut self) {
        while let Some(top) = self.open.pop() {
            self.add_to_parent(top);
        }
    }

    fn add_to_parent(&mut self, closed: UnfinishedNode) {
        if let Some(parent) = self.open.last() {
            let NodeData { amount, row, .. } = self.process.nodes[closed.node as usize];
            let parent = parent.node;
            self.tell_largest(parent, closed.node);
            let parent = &mut self.process.nodes[parent as usize];
            parent.amount += amount;
            parent.row = parent.row.min(row);
        }
    }

    /// In a diff, raises the largest change below `parent` to the largest change in and below `node`.
    fn tell_largest(&mut self, parent: u32, node: u32) {
        let amount = self.process.nodes[node as usize].amount.unsigned_abs();
        let below = &mut self.process.largest_below;
        if let Some(largest) = below.get(node as usize).copied() {
            let parent = &mut below[parent as usize];
            *parent = largest.max(amount).max(*parent);
        }
    }

    /// Inserts a new inner node, whose path has `end` bytes, between a closed node and its parent. The new node takes
    /// the old node's index, so that existing links to this index stay correct.
    fn split(&mut self, closed: UnfinishedNode, end: usize) {
        let old = self.process.nodes[closed.node as usize];
        let moved = self.push(NodeData { start: offset(end + 1), next: NONE, ..old });
        self.process.nodes[closed.node as usize] = NodeData {
            path: &old.path[..end],
            first_child: moved,
            reports: 0,
            merged: 0,
            source: NodeSource::Reports,
            presence: Presence::Both,
            ..old
        };
        if let Some(largest) = self.process.largest_below.get(closed.node as usize).copied() {
            self.process.largest_below[moved as usize] = largest;
            self.tell_largest(closed.node, moved);
        }
        self.open.push(UnfinishedNode { node: closed.node, end, last_child: moved });
    }

    fn leaf(&mut self, path: &'a str, start: u32, row: u32, units: Units, sum: PathSum) -> u32 {
        let PathSum { amount, reports, merged, presence } = sum;
        let (first_child, next) = (NONE, NONE);
        let source = NodeSource::Reports;
        self.push(NodeData {
            path,
            amount,
            start,
            first_child,
            next,
            row,
            reports,
            merged,
            units,
            source,
            presence,
        })
    }

    fn inner(&mut self, path: &'a str, start: u32, row: u32, units: Units) -> u32 {
        self.leaf(path, start, row, units, PathSum::default())
    }

    fn push(&mut self, node: NodeData<'a>) -> u32 {
        let id = u32::try_from(self.process.nodes.len()).ok().filter(|id| *id != NONE);
        self.process.nodes.push(node);
        if self.process.is_diff() {
            self.process.largest_below.push(0);
        }
        id.expect("at most two nodes for each report, and a set has fewer than 2^31 reports")
    }

    /// Adds `heap-unclassified`: `heap-allocated` minus all HEAP reports under `explicit/`. Adds nothing if a report
    /// has this path or a path below it.
    fn add_heap_unclassified(&mut self) {
        let Some(&root) = self.process.trees.iter().find(|id| self.path(**id) == "explicit") else { return };
        let Some(heap_allocated) = self.process.line("heap-allocated") else { return };
        if self.process.node(HEAP_UNCLASSIFIED).is_some() {
            return;
        }
        let amount = heap_allocated.amount() - self.heap;
        let first_child = self.process.nodes[root as usize].first_child;
        let child = self.push(NodeData {
            path: HEAP_UNCLASSIFIED,
            amount,
            start: offset("explicit/".len()),
            first_child: NONE,
            next: first_child,
            row: NONE,
            reports: 0,
            merged: 0,
            units: Units::Bytes,
            source: NodeSource::HeapUnclassified,
            presence: Presence::Both,
        });
        self.tell_largest(root, child);
        let root = &mut self.process.nodes[root as usize];
        root.first_child = child;
        root.amount += amount;
    }

    fn path(&self, id: u32) -> &'a str {
        self.process.nodes[id as usize].path
    }
}

/// The length of the longest common prefix that ends, in both paths, at a `/` or at the path's end. Both paths have
/// the same root.
fn common_prefix(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let ends = |path: &[u8]| path.get(same).is_none_or(|byte| *byte == b'/');
    if ends(a) && ends(b) {
        return same;
    }
    a[..same].iter().rposition(|byte| *byte == b'/').unwrap_or(0)
}

fn offset(n: usize) -> u32 {
    u32::try_from(n).expect("a path is shorter than 4 GiB")
}

/// The reports that a tree leaves out, as warnings.
#[derive(Default)]
struct DroppedReports {
    warnings: Vec<Warning>,
    more: usize,
}

impl DroppedReports {
    fn add(&mut self, path: &str, message: &str) {
        if self.warnings.len() == MAX_WARNINGS {
            self.more += 1;
            return;
        }
        self.warnings.push(Warning::new(WarningKind::ReportDropped, path, message));
    }

    fn finish(self, process: &str) -> Vec<Warning> {
        let mut warnings = self.warnings;
        if self.more > 0 {
            warnings.push(Warning::new(
                WarningKind::ReportDropped,
                process,
                format!("{} more reports were left out", self.more),
            ));
        }
        warnings
    }
}
