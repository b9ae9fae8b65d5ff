//! What has changed from one set of reports to the next.

use core::fmt;
use std::collections::HashMap;

use icu_collator::CollatorBorrowed;
use memory_report::tree::{FAKE_CHILD, Forest, ITSELF, Node, Process};
use memory_report::{ReportSet, Units};

use crate::filter::Filter;
use crate::layout::{Layout, Shown};
use crate::number::ByteUnits;
use crate::view::{Sort, View};
use crate::{escape, number, text};

/// How an amount differs from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is the same, or there is none before.
    Same,
    /// It was not there.
    New,
    /// It is larger.
    Grown,
    /// It is smaller.
    Shrunk,
    /// It is there no more.
    Gone,
}

impl Change {
    /// One character for it, a blank where nothing has changed.
    pub fn mark(self) -> char {
        match self {
            Self::Same => ' ',
            Self::New => '*',
            Self::Grown => '+',
            Self::Shrunk => '-',
            Self::Gone => 'x',
        }
    }
}

/// One line of what is watched: a process, or an entry of one of its trees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchRow {
    /// The amount with its unit; empty for a process.
    pub amount: String,
    /// By how much it differs from the one before; empty if it does not.
    pub difference: String,
    /// How it differs.
    pub change: Change,
    /// The name, two blanks before it for each level.
    pub name: String,
}

impl fmt::Display for WatchRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.amount.is_empty() {
            return f.write_str(&self.name);
        }
        let mark = self.change.mark();
        write!(f, "{:>16} {:>16} {mark} {}", self.amount, self.difference, self.name)
    }
}

/// Compares each set of reports with the one before it. Entries are chosen and sorted as in
/// [`text`](crate::text).
#[derive(Debug, Default)]
pub struct Watch {
    view: View,
    filter: Option<Filter>,
    before: Option<Before>,
}

#[derive(Debug, Default)]
struct Before {
    /// All entries, shown or not: an entry that becomes large has not become new.
    amounts: HashMap<String, i128>,
    /// The shown ones in order: process, path and unit.
    shown: Vec<(String, String, Units)>,
}

impl Watch {
    /// Nothing was seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to show bytes instead of MB, and everything, however small. Default: no.
    #[must_use]
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.view.verbose = verbose;
        self
    }

    /// What is less than this many percent of its tree's root is put into `(N tiny)`. Default: 1.
    #[must_use]
    pub fn threshold(mut self, percent: f64) -> Self {
        self.view.threshold = percent;
        self
    }

    /// Shows at most this many levels below the root of each tree. Default: all.
    #[must_use]
    pub fn depth(mut self, levels: u32) -> Self {
        self.view.depth = Some(levels);
        self
    }

    /// The order of what is below one entry. Default: the largest first.
    #[must_use]
    pub fn sort(mut self, sort: Sort) -> Self {
        self.view.sort = sort;
        self
    }

    /// How bytes are written. Default: MB, or B if verbose.
    #[must_use]
    pub fn units(mut self, units: ByteUnits) -> Self {
        self.view.bytes = Some(units);
        self
    }

    /// Shows only processes whose name contains this. Default: all.
    #[must_use]
    pub fn process(mut self, name: impl Into<String>) -> Self {
        self.view.process = Some(name.into());
        self
    }

    /// Shows only reports whose path passes; sums are then of these. Default: all.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// The lines for `set`, marked where they differ from the last call's.
    pub fn rows(&mut self, set: &ReportSet) -> Vec<WatchRow> {
        let forest = match &self.filter {
            Some(filter) => Forest::filtered(set, |path| filter.accepts(path)),
            None => Forest::new(set),
        };
        let collator = text::collator();
        let mut now = Before { amounts: amounts(&forest), shown: Vec::new() };
        let mut rows = Vec::new();
        let shown = |process: &&Process<'_>| !process.is_empty() && self.view.shows(process.name());
        for process in forest.processes().iter().filter(shown) {
            let mut name = String::new();
            escape::push_text(&mut name, process.name());
            rows.push(WatchRow {
                amount: String::new(),
                difference: String::new(),
                change: Change::Same,
                name,
            });
            for tree in sorted(process, &collator) {
                self.tree(process, tree, &collator, &mut now, &mut rows);
            }
            self.gone(process.name(), &now, &mut rows);
        }
        self.before = Some(now);
        rows
    }

    fn tree(
        &self,
        process: &Process<'_>,
        tree: Node<'_, '_>,
        collator: &CollatorBorrowed<'_>,
        now: &mut Before,
        rows: &mut Vec<WatchRow>,
    ) {
        let layout = Layout::new(tree, &self.view, collator);
        let mut left = vec![(0, 1)];
        while let Some((at, level)) = left.pop() {
            let shown: &Shown<'_, '_> = &layout.shown[at];
            let (path, name) = match shown.tiny {
                Some(count) => (format!("{}/(tiny)", shown.node.path()), format!("({count} tiny)")),
                None => (path_of(shown.node), shown.node.name().to_owned()),
            };
            let key = key(process.name(), &path);
            if shown.tiny.is_some() {
                now.amounts.insert(key.clone(), shown.amount);
            }
            let before = self.before.as_ref().map(|before| before.amounts.get(&key).copied());
            // How many are tiny changes with the others' sizes; that is nothing new.
            let before = if shown.tiny.is_some() { before.filter(Option::is_some) } else { before };
            rows.push(self.row(shown.amount, before, tree.units(), level, &name));
            now.shown.push((process.name().to_owned(), path, tree.units()));
            if shown.is_open() {
                let children = shown.children.start as usize..shown.children.end as usize;
                left.extend(children.rev().map(|child| (child, level + 1)));
            }
        }
    }

    /// `before` is `None` if nothing is known of before.
    fn row(
        &self,
        amount: i128,
        before: Option<Option<i128>>,
        units: Units,
        level: usize,
        name: &str,
    ) -> WatchRow {
        let (change, by) = match before {
            None => (Change::Same, 0),
            Some(None) => (Change::New, amount),
            Some(Some(before)) if amount > before => (Change::Grown, amount - before),
            Some(Some(before)) if amount < before => (Change::Shrunk, amount - before),
            Some(Some(_)) => (Change::Same, 0),
        };
        let mut row =
            WatchRow { amount: String::new(), difference: String::new(), change, name: "  ".repeat(level) };
        self.view.push_amount(&mut row.amount, amount, units);
        if change != Change::Same {
            self.push_difference(&mut row.difference, by, units);
        }
        escape::push_name(&mut row.name, name);
        row
    }

    /// Small ones in bytes: `+0.00 MB` says nothing.
    fn push_difference(&self, to: &mut String, by: i128, units: Units) {
        const SMALL: u128 = 10_486;
        if by >= 0 {
            to.push('+');
        }
        if self.view.bytes.is_none() && by.unsigned_abs() < SMALL {
            number::push_amount(to, by, units, true);
        } else {
            self.view.push_amount(to, by, units);
        }
    }

    /// What a process showed before and has no more.
    fn gone(&self, process: &str, now: &Before, rows: &mut Vec<WatchRow>) {
        let Some(before) = &self.before else { return };
        for (of, path, units) in before.shown.iter().filter(|(of, ..)| of == process) {
            let key = key(of, path);
            if now.amounts.contains_key(&key) || path.ends_with("/(tiny)") {
                continue;
            }
            let was = before.amounts.get(&key).copied().unwrap_or(0);
            let mut row = self.row(0, Some(Some(was)), *units, 1, path);
            row.change = Change::Gone;
            rows.push(row);
        }
    }
}

/// The path, which for the own amount of an inner node is not that of the inner node.
fn path_of(node: Node<'_, '_>) -> String {
    let (path, name) = (node.path(), node.name());
    if [ITSELF, FAKE_CHILD].contains(&name) && !path.ends_with(name) {
        return format!("{path}/{name}");
    }
    path.to_owned()
}

fn key(process: &str, path: &str) -> String {
    // No name holds a NUL that would mix up the two: one from a file is no more than confusing.
    format!("{process}\0{path}")
}

/// The explicit tree, then the others, then the single lines, each by name.
fn sorted<'p, 'a>(process: &'p Process<'a>, collator: &CollatorBorrowed<'_>) -> Vec<Node<'p, 'a>> {
    let order = |nodes: &mut Vec<Node<'p, 'a>>| {
        nodes.sort_by(|a, b| {
            let explicit = |node: &Node<'_, '_>| node.path() != "explicit";
            explicit(a).cmp(&explicit(b)).then_with(|| collator.compare(a.path(), b.path()))
        });
    };
    let mut trees: Vec<_> = process.trees().collect();
    let mut lines: Vec<_> = process.lines().collect();
    order(&mut trees);
    order(&mut lines);
    trees.append(&mut lines);
    trees
}

fn amounts(forest: &Forest<'_>) -> HashMap<String, i128> {
    let mut amounts = HashMap::new();
    for process in forest.processes() {
        let mut left: Vec<_> = process.trees().chain(process.lines()).collect();
        while let Some(node) = left.pop() {
            amounts.insert(key(process.name(), &path_of(node)), node.amount());
            left.extend(node.children());
        }
    }
    amounts
}
