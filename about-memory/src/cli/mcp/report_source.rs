//! Reports of a file or of a process as tables.

use std::collections::HashMap;
use std::path::Path;

use memory_report::file::{self, ReadOptions};
use memory_report::tree::{Forest, TreeNode};
use memory_report::{ReportSet, Units};

use super::super::dump_limits::DumpLimits;
use super::control::CallControl;
use super::reason::reason;
use super::table::{AmountRow, AmountTable, RowSums, row_id, short};

const EXPLICIT: &str = "explicit";

/// A set of reports.
pub(super) struct ReportSource {
    set: ReportSet,
}

impl ReportSource {
    /// The keys of the tables: the paths below `explicit`, the processes, and all other reports.
    pub(super) const GROUPS: &'static [&'static str] = &["path", "process", "other"];

    pub(super) fn new(set: ReportSet) -> Self {
        Self { set }
    }

    pub(super) fn open(path: &Path, limits: &DumpLimits) -> Result<Self, String> {
        let options = ReadOptions::new().max_bytes(limits.options().byte_limit());
        let set = file::read_with(path, &options);
        set.map(Self::new).map_err(|error| reason(path, failure(path, error)))
    }

    /// The warnings of the reports and of their trees.
    pub(super) fn notes(&self) -> Vec<String> {
        about_memory::text(&self.set).warnings().map(ToString::to_string).collect()
    }

    pub(super) fn total(&self) -> RowSums {
        let forest = Forest::new(&self.set);
        RowSums {
            rows: forest.processes().len(),
            bytes: forest.amount(EXPLICIT).unwrap_or(0),
            count: self.set.len() as i128,
        }
    }

    pub(super) fn table(&self, group: &str) -> AmountTable {
        let table = table(&self.set, group, "bytes of reports below `explicit`");
        if table.overlaps { table } else { table.share_of(self.total().bytes) }
    }

    /// The difference to a later set, by path.
    pub(super) fn changes(&self, after: &Self) -> AmountTable {
        let changes = about_memory::diff(&self.set, &after.set);
        let mut table = table(&changes, "path", "change of the bytes below `explicit`");
        let rows = (0..table.rows.len()).map(|index| table.rows.row(index));
        let rows: Vec<AmountRow> = rows.filter(|row| row.bytes != 0).collect();
        table.rows = Box::new(rows);
        table
    }

    /// The sums of a path over all processes, and its description. `None` if no report has the path.
    pub(super) fn node(&self, path: &str) -> Option<(RowSums, String)> {
        let forest = Forest::new(&self.set);
        let mut found = RowSums::default();
        let mut description = String::new();
        for process in forest.processes() {
            let Some(node) = process.node(path) else { continue };
            found.rows += 1;
            found.bytes += node.amount();
            found.count += i128::from(node.reports());
            if let Some(text) = node.description().filter(|_| description.is_empty()) {
                description = short(text);
            }
        }
        (found.rows > 0).then_some((found, description))
    }

    /// The nodes directly below a path, summed over all processes. `whole` are the bytes of the path.
    pub(super) fn children(
        &self,
        path: &str,
        whole: i128,
        control: &CallControl,
    ) -> Result<AmountTable, String> {
        let forest = Forest::new(&self.set);
        let mut rows: Vec<AmountRow> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for node in forest.processes().iter().filter_map(|process| process.node(path)) {
            for child in node.children() {
                if control.is_cancelled() {
                    return Err("cancelled".to_owned());
                }
                let place = *places.entry(child.path()).or_insert_with(|| {
                    let (id, name) = (row_id(child.path()), short(child.name()));
                    rows.push(AmountRow { id, name, ..AmountRow::default() });
                    rows.len() - 1
                });
                rows[place].bytes += child.amount();
                rows[place].count += reports_below(child);
            }
        }
        Ok(AmountTable::new("child", "amounts below the path", "reports", rows).share_of(whole))
    }
}

fn failure(path: &Path, error: memory_report::ReadError) -> super::super::Failure {
    super::super::Failure::File(path.display().to_string(), error.into())
}

/// The number of reports of a node and of all nodes below it.
fn reports_below(node: TreeNode<'_, '_>) -> i128 {
    let mut left = vec![node];
    let mut count = 0;
    while let Some(node) = left.pop() {
        count += i128::from(node.reports());
        left.extend(node.children());
    }
    count
}

fn table(set: &ReportSet, group: &str, bytes: &'static str) -> AmountTable {
    let forest = Forest::new(set);
    let several = forest.processes().len() > 1;
    let mut rows = Vec::new();
    for process in forest.processes() {
        let place = if several { short(process.name()) } else { String::new() };
        match group {
            "process" => {
                let explicit = process.amount(EXPLICIT);
                let more = process.resident().map(|resident| ("resident", i128::from(resident)));
                rows.push(AmountRow {
                    name: short(process.name()),
                    bytes: explicit.unwrap_or(0),
                    count: 1,
                    more: more.into_iter().collect(),
                    ..AmountRow::default()
                });
            }
            "path" => {
                let explicit =
                    process.trees().filter(|tree| tree.name() == EXPLICIT || is_chain(tree.name()));
                explicit.for_each(|tree| add_leaves(tree, &place, &mut rows));
            }
            _ => {
                let others = process.trees().filter(|tree| tree.name() != EXPLICIT && !is_chain(tree.name()));
                others.for_each(|tree| add_leaves(tree, &place, &mut rows));
                process.lines().for_each(|line| add_leaves(line, &place, &mut rows));
            }
        }
    }
    match group {
        "process" => AmountTable::new("process", "bytes of `explicit`", "processes", rows),
        "path" => AmountTable::new("path", bytes, "reports", rows),
        _ => AmountTable::new("other", "bytes of reports outside of `explicit`", "reports", rows)
            .overlapping()
            .note(
                "Amounts that are not bytes have the field `amount`: a number, or hundredths of a per cent.",
            ),
    }
}

/// Whether the name of a root is a chain of names that starts with `explicit`.
fn is_chain(name: &str) -> bool {
    name.strip_prefix(EXPLICIT).is_some_and(|rest| rest.starts_with('/'))
}

/// Adds the leaves of a tree.
fn add_leaves(tree: TreeNode<'_, '_>, place: &str, rows: &mut Vec<AmountRow>) {
    let mut left = vec![tree];
    while let Some(node) = left.pop() {
        if !node.is_leaf() {
            left.extend(node.children());
            continue;
        }
        let is_bytes = node.units() == Units::Bytes;
        rows.push(AmountRow {
            id: row_id(node.path()),
            name: short(node.path()),
            place: place.to_owned(),
            bytes: if is_bytes { node.amount() } else { 0 },
            count: i128::from(node.reports().max(1)),
            more: if is_bytes { Vec::new() } else { vec![("amount", node.amount())] },
        });
    }
}
