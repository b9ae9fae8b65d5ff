//! Amounts over time: chosen paths in many reports.
//!
//! A series keeps only the chosen amounts of each report, so it can cover many reports.

#[cfg(feature = "export")]
mod counters;
mod text;

use std::collections::{BTreeMap, HashSet};

use memory_report::tree::{Forest, ITSELF, ProcessTrees, TreeNode};
use memory_report::{ReportSet, Units};

use crate::normalize::{DiffOptions, Normalizer};

pub use text::SeriesText;

const MAX_DEPTH: u32 = 100;

/// The order of the rows of a [`Series`]. Rows in bytes always come first, then counts, then percentages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SeriesSort {
    /// The largest amount in the last report first.
    #[default]
    Amount,
    /// The largest change from the first report to the last first.
    Growth,
    /// By path.
    Name,
}

/// Options of a [`Series`].
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesOptions {
    paths: Vec<String>,
    depth: u32,
    threshold: f64,
    process: Option<String>,
    by_process: bool,
    sort: SeriesSort,
}

impl Default for SeriesOptions {
    fn default() -> Self {
        let (paths, process, sort) = (Vec::new(), None, SeriesSort::Amount);
        Self { paths, depth: 0, threshold: 1.0, process, by_process: false, sort }
    }
}

impl SeriesOptions {
    /// Options with all defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a path. Without paths, all trees and all reports outside of trees have rows.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Sets how many levels below each path also have rows, at most 100. Default: 0.
    #[must_use]
    pub fn depth(self, levels: u32) -> Self {
        Self { depth: levels, ..self }
    }

    /// Sets the threshold: a row below a path is omitted if its largest amount in all reports is below this percentage
    /// of the path's largest amount. Default: 1.
    #[must_use]
    pub fn threshold(self, percent: f64) -> Self {
        Self { threshold: percent, ..self }
    }

    /// Limits the series to processes whose name contains this text. Default: all processes.
    #[must_use]
    pub fn process(self, part: impl Into<String>) -> Self {
        Self { process: Some(part.into()), ..self }
    }

    /// Sets whether each process has rows, in addition to the totals. Default: no.
    #[must_use]
    pub fn by_process(self, by_process: bool) -> Self {
        Self { by_process, ..self }
    }

    /// Sets the order of rows. Default: the largest first.
    #[must_use]
    pub fn sort(self, sort: SeriesSort) -> Self {
        Self { sort, ..self }
    }
}

/// Amounts of chosen paths in a sequence of reports.
///
/// Names are normalized as for a [`diff`](crate::diff()), so a process has the same rows under any process id.
///
/// ```
/// use about_memory::{Series, SeriesOptions};
/// use memory_reporter::{Kind, Report, ReportSet, Units};
///
/// let mut series = Series::new(SeriesOptions::new());
/// for (name, amount) in [("before", 3 << 20), ("after", 5 << 20)] {
///     let mut set = ReportSet::new();
///     let (process, path, description) = ("Main Process (pid 1)", "explicit/cache", "");
///     set.push(Report { process, path, kind: Kind::Heap, units: Units::Bytes, amount, description });
///     series.add(name, &set);
/// }
/// let rows = series.rows();
/// assert_eq!((rows[0].path, rows[0].amounts), ("explicit", &[Some(3 << 20), Some(5 << 20)][..]));
/// println!("{}", series.text());
/// ```
#[derive(Debug)]
pub struct Series {
    options: SeriesOptions,
    reports: Vec<String>,
    /// For each chosen path: whether a report contains it.
    found: Vec<bool>,
    /// The amounts by process (`None` for the total) and path.
    rows: BTreeMap<(Option<String>, String), PathAmounts>,
}

#[derive(Debug)]
struct PathAmounts {
    units: Units,
    /// The chosen path that this row is at or below.
    chosen: String,
    amounts: Vec<Option<i128>>,
}

/// One path in all reports.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SeriesRow<'s> {
    /// The process; `None` for the total of all processes.
    pub process: Option<&'s str>,
    /// The path.
    pub path: &'s str,
    /// The units of the first report that contains the path.
    pub units: Units,
    /// The amount in each report, or `None` if the report does not contain the path.
    pub amounts: &'s [Option<i128>],
}

impl SeriesRow<'_> {
    /// The last amount minus the first; a missing amount is 0.
    pub fn growth(&self) -> i128 {
        let end = |amount: Option<&Option<i128>>| amount.copied().flatten().unwrap_or(0);
        end(self.amounts.last()) - end(self.amounts.first())
    }
}

impl Series {
    /// A series without reports.
    pub fn new(mut options: SeriesOptions) -> Self {
        // The depth is limited because each level has rows, and each row stores its path.
        options.depth = options.depth.min(MAX_DEPTH);
        let found = vec![false; options.paths.len()];
        Self { options, reports: Vec::new(), found, rows: BTreeMap::new() }
    }

    /// Adds a report. Reports must be added in the order of time. `name` is the report's name in the text.
    pub fn add(&mut self, name: impl Into<String>, set: &ReportSet) {
        let normalizer = Normalizer::new(&DiffOptions::new(), &[set])
            .expect("the rules of Firefox are regular expressions");
        let set = normalizer.normalized(set);
        let forest = Forest::new(&set);
        let at = self.reports.len();
        self.reports.push(name.into());
        let part = self.options.process.clone().unwrap_or_default();
        let counts = |process: &&ProcessTrees<'_>| process.name().contains(&part);
        for process in forest.processes().iter().filter(counts) {
            // A path below two chosen paths is counted once.
            let mut seen = HashSet::new();
            if self.options.paths.is_empty() {
                // If a tree and a line have the same name, the path means the tree.
                let trees: HashSet<_> = process.trees().map(TreeNode::path).collect();
                let is_tree = |line: &TreeNode<'_, '_>| trees.contains(line.path());
                for node in process.trees().chain(process.lines().filter(|line| !is_tree(line))) {
                    self.add_node(at, process, node, node.path(), &mut seen);
                }
            }
            for (i, chosen) in self.options.paths.clone().iter().enumerate() {
                let chosen = normalizer.path(chosen);
                if let Some(node) = process.node(&chosen) {
                    self.found[i] = true;
                    self.add_node(at, process, node, &chosen, &mut seen);
                }
            }
        }
        for row in self.rows.values_mut() {
            row.amounts.resize(at + 1, None);
        }
    }

    /// Adds the amounts at a chosen path and below it. Rows belong to segments of a path, not to nodes: the chains that
    /// are merged into one node differ from report to report.
    fn add_node(
        &mut self,
        at: usize,
        process: &ProcessTrees<'_>,
        node: TreeNode<'_, '_>,
        chosen: &str,
        seen: &mut HashSet<String>,
    ) {
        let mut left = vec![(node, chosen.len(), 0)];
        let most_depth = self.options.depth;
        let mut add = |path: &str, node| {
            if seen.insert(path.to_owned()) {
                self.add_amount(at, process, path, node, chosen);
            }
        };
        add(chosen, node);
        while let Some((node, mut end, mut depth)) = left.pop() {
            let path = node.path();
            while end < path.len() && depth < most_depth {
                end = path[end + 1..].find('/').map_or(path.len(), |more| end + 1 + more);
                depth += 1;
                add(&path[..end], node);
            }
            if depth == most_depth {
                continue;
            }
            for child in node.children() {
                if child.name() == ITSELF && child.path() == path {
                    add(&format!("{path}/{ITSELF}"), child);
                } else {
                    left.push((child, path.len(), depth));
                }
            }
        }
    }

    fn add_amount(
        &mut self,
        at: usize,
        process: &ProcessTrees<'_>,
        path: &str,
        node: TreeNode<'_, '_>,
        chosen: &str,
    ) {
        let name = self.options.by_process.then(|| Some(process.name().to_owned()));
        for process in [None].into_iter().chain(name) {
            let units = node.units();
            let row = self.rows.entry((process, path.to_owned())).or_insert_with(|| PathAmounts {
                units,
                chosen: chosen.to_owned(),
                amounts: Vec::new(),
            });
            if row.units == units {
                row.amounts.resize(at + 1, None);
                let amount = &mut row.amounts[at];
                *amount = Some(amount.unwrap_or(0) + node.amount());
            }
        }
    }

    /// The names of the reports.
    pub fn reports(&self) -> &[String] {
        &self.reports
    }

    /// Returns the chosen paths that no report contains.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let paths = self.options.paths.iter().zip(&self.found);
        paths.filter(|(_, found)| !**found).map(|(path, _)| path.as_str())
    }

    /// Returns the rows that are not tiny: the totals first, then the rows of each process.
    pub fn rows(&self) -> Vec<SeriesRow<'_>> {
        let mut rows: Vec<_> = self
            .all_rows()
            .filter(|(row, amounts)| !self.is_tiny(row, amounts))
            .map(|(row, _)| row)
            .collect();
        let key = |row: &SeriesRow<'_>| match self.options.sort {
            SeriesSort::Amount => row.amounts.last().copied().flatten().unwrap_or(0),
            SeriesSort::Growth => row.growth().saturating_abs(),
            SeriesSort::Name => 0,
        };
        // The rows are sorted by process and path; the sort is stable.
        rows.sort_by(|a, b| {
            let order = |row: &SeriesRow<'_>| (row.units == Units::Percentage, row.units != Units::Bytes);
            a.process.cmp(&b.process).then(order(a).cmp(&order(b))).then(key(b).cmp(&key(a)))
        });
        rows
    }

    /// The number of tiny rows.
    pub fn tiny(&self) -> usize {
        self.all_rows().filter(|(row, amounts)| self.is_tiny(row, amounts)).count()
    }

    fn all_rows(&self) -> impl Iterator<Item = (SeriesRow<'_>, &PathAmounts)> {
        self.rows.iter().map(|((process, path), row)| {
            let (units, amounts) = (row.units, row.amounts.as_slice());
            (SeriesRow { process: process.as_deref(), path, units, amounts }, row)
        })
    }

    /// Whether the largest amount of a row below a chosen path is below the threshold.
    fn is_tiny(&self, row: &SeriesRow<'_>, amounts: &PathAmounts) -> bool {
        if row.path == amounts.chosen {
            return false;
        }
        let whole = self.rows.get(&(row.process.map(str::to_owned), amounts.chosen.clone()));
        let largest = |amounts: &[Option<i128>]| {
            amounts.iter().flatten().map(|amount| amount.unsigned_abs()).max().unwrap_or(0)
        };
        let whole = whole.map_or(0, |whole| largest(&whole.amounts));
        100.0 * largest(row.amounts) as f64 / (whole as f64) < self.options.threshold
    }
}
