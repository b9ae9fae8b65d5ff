//! The changes from one set of reports to the next.

use core::fmt;
use std::collections::HashMap;

use memory_report::Units;
use memory_report::tree::{FAKE_CHILD, Forest, ITSELF, ProcessTrees, TreeNode};

use crate::collation::Collator;
use crate::layout::{LayoutEntry, TreeLayout};
use crate::text::{self, ReportText};
use crate::view::TextOptions;
use crate::{escape, number};

/// The difference of an amount from the previous amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// The amount is the same, or there is no previous set.
    Same,
    /// The entry is new.
    New,
    /// The amount is larger.
    Grown,
    /// The amount is smaller.
    Shrunk,
    /// The entry is gone.
    Gone,
}

impl EntryChange {
    /// Returns the character that marks the change; a space without a change.
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

/// One line: a process, or an entry of one of its trees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchRow {
    /// The amount with its unit; empty for a process.
    pub amount: String,
    /// The difference from the previous amount. The previous amount of a new entry counts as 0. Empty without a change.
    pub difference: String,
    /// The kind of change.
    pub change: EntryChange,
    /// The name, indented by two spaces per level.
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

/// Compares each set of reports with the previous set. The options of [`text`](crate::text()) select and sort the
/// entries.
#[derive(Debug, Default)]
pub struct Watch {
    /// The options of the last text.
    view: TextOptions,
    before: Option<PreviousReports>,
}

#[derive(Debug, Default)]
struct PreviousReports {
    /// All entries, shown or not, so that an entry that was tiny before does not count as new.
    amounts: HashMap<String, i128>,
    /// The shown entries in order: process, path and unit.
    shown: Vec<(String, String, Units)>,
}

impl Watch {
    /// Creates a comparison without a previous set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the lines of a text, chosen and sorted by the text's options, with the changes since the previous call.
    pub fn rows(&mut self, text: &ReportText<'_>) -> Vec<WatchRow> {
        self.view.clone_from(text.view());
        let forest = text.forest();
        let collator = Collator::new();
        let mut now = PreviousReports { amounts: amounts(forest), shown: Vec::new() };
        let mut rows = Vec::new();
        let shown = |process: &&ProcessTrees<'_>| !process.is_empty() && self.view.shows(process.name());
        for process in forest.processes().iter().filter(shown) {
            let mut name = String::new();
            escape::push_text(&mut name, process.name());
            rows.push(WatchRow {
                amount: String::new(),
                difference: String::new(),
                change: EntryChange::Same,
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
        process: &ProcessTrees<'_>,
        tree: TreeNode<'_, '_>,
        collator: &Collator,
        now: &mut PreviousReports,
        rows: &mut Vec<WatchRow>,
    ) {
        let layout = TreeLayout::new(tree, &self.view, collator);
        let mut left = vec![(0, 1)];
        while let Some((at, level)) = left.pop() {
            let shown: &LayoutEntry<'_, '_> = &layout.shown[at];
            let (path, name) = match shown.tiny {
                Some(count) => (format!("{}/(tiny)", shown.node.path()), format!("({count} tiny)")),
                None => (path_of(shown.node), shown.node.name().to_owned()),
            };
            let key = key(process.name(), &path);
            if shown.tiny.is_some() {
                now.amounts.insert(key.clone(), shown.amount);
            }
            let before = self.before.as_ref().map(|before| before.amounts.get(&key).copied());
            // The number of tiny entries changes with the sizes of all entries, so `(N tiny)` is never new.
            let before = if shown.tiny.is_some() { before.filter(Option::is_some) } else { before };
            rows.push(self.row(shown.amount, before, tree.units(), level, &name));
            now.shown.push((process.name().to_owned(), path, tree.units()));
            if shown.is_open() {
                let children = shown.children.start as usize..shown.children.end as usize;
                left.extend(children.rev().map(|child| (child, level + 1)));
            }
        }
    }

    /// `before` is `None` without a previous set, and `Some(None)` if the previous set does not contain the entry.
    fn row(
        &self,
        amount: i128,
        before: Option<Option<i128>>,
        units: Units,
        level: usize,
        name: &str,
    ) -> WatchRow {
        let (change, by) = match before {
            None => (EntryChange::Same, 0),
            Some(None) => (EntryChange::New, amount),
            Some(Some(before)) if amount > before => (EntryChange::Grown, amount - before),
            Some(Some(before)) if amount < before => (EntryChange::Shrunk, amount - before),
            Some(Some(_)) => (EntryChange::Same, 0),
        };
        let mut row =
            WatchRow { amount: String::new(), difference: String::new(), change, name: "  ".repeat(level) };
        self.view.push_amount(&mut row.amount, amount, units);
        if change != EntryChange::Same {
            self.push_difference(&mut row.difference, by, units);
        }
        escape::push_name(&mut row.name, name);
        row
    }

    /// Appends a difference. Small differences are in bytes, because `+0.00 MB` would show no change.
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

    /// Appends the entries that were shown before and no longer exist.
    fn gone(&self, process: &str, now: &PreviousReports, rows: &mut Vec<WatchRow>) {
        let Some(before) = &self.before else { return };
        for (of, path, units) in before.shown.iter().filter(|(of, ..)| of == process) {
            let key = key(of, path);
            if now.amounts.contains_key(&key) || path.ends_with("/(tiny)") {
                continue;
            }
            let was = before.amounts.get(&key).copied().unwrap_or(0);
            let mut row = self.row(0, Some(Some(was)), *units, 1, path);
            row.change = EntryChange::Gone;
            rows.push(row);
        }
    }
}

/// Returns the path of a node. The child that holds an inner node's own amount has the same path, so its name is
/// appended.
fn path_of(node: TreeNode<'_, '_>) -> String {
    let (path, name) = (node.path(), node.name());
    if [ITSELF, FAKE_CHILD].contains(&name) && !path.ends_with(name) {
        return format!("{path}/{name}");
    }
    path.to_owned()
}

fn key(process: &str, path: &str) -> String {
    // If a name from a file contains a NUL, two entries may get the same key. This affects only this comparison.
    format!("{process}\0{path}")
}

/// Sorts the explicit tree first, then the other trees, then the lines. Each group is sorted by name.
fn sorted<'p, 'a>(process: &'p ProcessTrees<'a>, collator: &Collator) -> Vec<TreeNode<'p, 'a>> {
    let mut nodes = text::sorted(process.trees(), collator);
    nodes.sort_by_key(|tree| tree.path() != "explicit");
    nodes.extend(text::sorted(process.lines(), collator));
    nodes
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
