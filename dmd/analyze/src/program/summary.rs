//! A summary of a heap: the sites, types and crates that hold the most memory.

use core::fmt::{self, Display};

use super::ProgramOptions;
use super::holder::{BlockHolder, HolderFinder, HolderKey, names};
use super::line::{bold, bytes, dim, tails};
use super::node::{HolderNode, sum};
use crate::print::{mark, number, percent};
use crate::records::{Analysis, BlockSums, RecordKind};

/// The minimum number of rows of a table. More rows follow until the rows have [`ENOUGH`] of the heap.
const ROWS: usize = 5;
const MOST_ROWS: usize = 20;

/// The percentage of the heap at which a table is complete.
const ENOUGH: i128 = 80;

/// The largest sites, types and crates of a heap. Its `Display` writes three tables. A table has five rows. If five
/// rows hold less than 80 % of the heap, the table has up to twenty rows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeapSummary {
    /// The whole heap.
    pub total: BlockSums,
    /// The tables: by site, by type, by crate.
    pub tables: Vec<SummaryTable>,
    /// The sums of reported and of unreported blocks; `None` if no block is reported.
    pub reported: Option<[BlockSums; 2]>,
    estimated: bool,
    width: usize,
    colour: bool,
    verbose: bool,
}

/// A table of the largest holders of memory under one key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SummaryTable {
    /// The key of the rows.
    pub by: HolderKey,
    /// The largest holders, sorted descending by bytes.
    pub rows: Vec<SummaryRow>,
    /// The number of further rows.
    pub more: usize,
    /// The sums of further rows.
    pub rest: BlockSums,
}

/// One holder of memory.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SummaryRow {
    /// The function, type or crate.
    pub name: String,
    /// The source line at which the function allocates the most bytes, or the range of lines at which it allocates many
    /// bytes. Empty if the line is unknown, or if the row is not a function.
    pub place: String,
    /// The sums of the row's blocks.
    pub sums: BlockSums,
}

impl HeapSummary {
    /// Summarizes the blocks that pass the filters of an analysis. The analysis should have whole stacks and all
    /// records.
    pub fn new(analysis: &Analysis, options: &ProgramOptions) -> Self {
        let holders = HolderFinder::new(analysis, options);
        let mut keys = vec![HolderKey::Site, HolderKey::Type, HolderKey::Crate];
        keys.retain(|key| *key != HolderKey::Type || analysis.has_types());
        let mut roots: Vec<HolderNode> = keys.iter().map(|_| HolderNode::default()).collect();
        let mut total = BlockSums::default();
        for record in analysis.sections.iter().flat_map(|section| &section.records) {
            total.add(record.sums);
            for (root, holder) in roots.iter_mut().zip(holders.find(record, &keys)) {
                root.add(&[holder], record.sums);
            }
        }
        let mut parts = [BlockSums::default(); 2];
        for section in &analysis.sections {
            parts[usize::from(section.kind == RecordKind::Unreported)].add(section.sums);
        }
        Self {
            reported: (!analysis.has_no_reports()).then_some(parts),
            total,
            tables: keys.iter().zip(&roots).map(|(key, root)| table(*key, root, options)).collect(),
            estimated: analysis.sections.iter().any(|section| section.estimated),
            width: options.width,
            colour: options.colour,
            verbose: options.verbose,
        }
    }
}

impl HeapSummary {
    /// Whether the dump is a sample, so that all amounts are estimates.
    pub fn is_estimated(&self) -> bool {
        self.estimated
    }
}

/// The number of columns before a row's name.
pub(super) const AMOUNTS: usize = 24;

/// The number of columns for the names of rows with this key. Sites leave room for a place beside the name.
pub(super) fn for_names(key: HolderKey, room: usize) -> usize {
    match key {
        HolderKey::Site => room * 3 / 5,
        HolderKey::Type | HolderKey::Crate => room,
    }
}

/// The number of a root's children that become rows of a table. The children are sorted descending by bytes.
fn rows_of(children: &[(&BlockHolder, &HolderNode)]) -> usize {
    let enough = sum(children).usable() * ENOUGH / 100;
    let mut named = 0;
    let needed = children.iter().take_while(|(_, node)| {
        let is_needed = named < enough;
        named += node.sums.usable();
        is_needed
    });
    needed.count().clamp(ROWS, MOST_ROWS).min(children.len())
}

fn table(by: HolderKey, root: &HolderNode, options: &ProgramOptions) -> SummaryTable {
    let children = root.children();
    let (shown, further) = children.split_at(rows_of(&children));
    let holders: Vec<&BlockHolder> = shown.iter().map(|(holder, _)| *holder).collect();
    let room = options.width.saturating_sub(AMOUNTS);
    let names = names(&holders, for_names(by, room), room, options);
    let row = |((_, node), name): (&(&BlockHolder, &HolderNode), String)| SummaryRow {
        name,
        place: node.place().into_owned(),
        sums: node.sums,
    };
    let rows = shown.iter().zip(names).map(row).collect();
    SummaryTable { by, rows, more: further.len(), rest: sum(further) }
}

impl Display for HeapSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = ProgramOptions::new().width(self.width).colour(self.colour).verbose(self.verbose);
        let whole = self.total.usable();
        let mark = mark(self.estimated);
        if let Some([reported, unreported]) = self.reported {
            let part = |sums: BlockSums| {
                let share = percent(sums.usable(), whole);
                format!("{mark}{} ({share})", bytes(sums.usable()))
            };
            writeln!(f, "Reported: {}. Unreported: {}.\n", part(reported), part(unreported))?;
        }
        for (index, table) in self.tables.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            writeln!(
                f,
                "{}",
                bold(&format!("{:>13}  {:>7}  by {}", "bytes", "share", table.by.name()), &options)
            )?;
            let names: Vec<String> = table.rows.iter().map(|row| row.name.clone()).collect();
            let places: Vec<String> = table.rows.iter().map(|row| row.place.clone()).collect();
            let tails = tails(&names, &places, self.width.saturating_sub(AMOUNTS), AMOUNTS + 4, &options);
            for ((row, name), tail) in table.rows.iter().zip(&names).zip(&tails) {
                let amount = format!("{mark}{}", bytes(row.sums.usable()));
                let share = percent(row.sums.usable(), whole);
                writeln!(f, "{amount:>13}  {share:>7}  {name}{tail}")?;
            }
            if table.more > 0 {
                let amount = format!("{mark}{}", bytes(table.rest.usable()));
                let share = percent(table.rest.usable(), whole);
                let more = format!("({} more)", number(table.more as i128));
                writeln!(f, "{amount:>13}  {share:>7}  {}", dim(&more, &options))?;
            }
        }
        Ok(())
    }
}
