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
    /// Whether the tables have columns for resident, swapped and untouched bytes.
    resident: bool,
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
        Self::with(analysis, options, rows_of)
    }

    /// Like [`new`](Self::new), but the tables have all rows.
    pub fn whole(analysis: &Analysis, options: &ProgramOptions) -> Self {
        Self::with(analysis, options, |children| children.len())
    }

    fn with(
        analysis: &Analysis,
        options: &ProgramOptions,
        rows: fn(&[(&BlockHolder, &HolderNode)]) -> usize,
    ) -> Self {
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
            tables: keys.iter().zip(&roots).map(|(key, root)| table(*key, root, options, rows)).collect(),
            estimated: analysis.sections.iter().any(|section| section.estimated),
            resident: options.resident && analysis.has_resident(),
            width: options.width,
            colour: options.colour,
            verbose: options.verbose,
        }
    }
}

impl HeapSummary {
    /// Whether sums of a kind of records are estimates, for example because the dump is a sample.
    pub fn is_estimated(&self) -> bool {
        self.estimated
    }
}

/// The number of columns before a row's name.
pub(super) const AMOUNTS: usize = 24;

/// The minimum width of names and places beside the columns of resident bytes.
const LEAST_NAMES: usize = 60;

/// The columns for the bytes in memory, the bytes that are swapped out, and the bytes without memory. If no byte is
/// swapped out, the second column is missing.
struct ResidentColumns {
    mark: &'static str,
    has_swap: bool,
}

impl ResidentColumns {
    fn heading(&self) -> String {
        let swapped = if self.has_swap { format!("  {:>13}", "swapped") } else { String::new() };
        format!("  {:>13}{swapped}  {:>13}", "resident", "untouched")
    }

    fn amounts(&self, sums: BlockSums) -> String {
        let column = |amount: i128| format!("  {:>13}", format!("{}{}", self.mark, bytes(amount)));
        let swapped = if self.has_swap { column(sums.swapped) } else { String::new() };
        format!("{}{swapped}{}", column(sums.resident()), column(sums.untouched))
    }
}

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

fn table(
    by: HolderKey,
    root: &HolderNode,
    options: &ProgramOptions,
    rows: fn(&[(&BlockHolder, &HolderNode)]) -> usize,
) -> SummaryTable {
    let children = root.children();
    let (shown, further) = children.split_at(rows(&children));
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
        let columns = ResidentColumns { mark, has_swap: self.total.swapped != 0 };
        let columns = self.resident.then_some(columns);
        let heading = columns.as_ref().map(ResidentColumns::heading).unwrap_or_default();
        let before = AMOUNTS + heading.len();
        // A narrow column of names would not be readable.
        let width = self.width.max(before + LEAST_NAMES);
        let of = |sums| columns.as_ref().map(|columns| columns.amounts(sums)).unwrap_or_default();
        for (index, table) in self.tables.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let title = format!("{:>13}{heading}  {:>7}  by {}", "bytes", "share", table.by.name());
            writeln!(f, "{}", bold(&title, &options))?;
            let names: Vec<String> = table.rows.iter().map(|row| row.name.clone()).collect();
            let places: Vec<String> = table.rows.iter().map(|row| row.place.clone()).collect();
            let options = ProgramOptions { width, ..ProgramOptions::default() }.colour(self.colour);
            let options = options.verbose(self.verbose);
            let tails = tails(&names, &places, width.saturating_sub(before), before + 4, &options);
            for ((row, name), tail) in table.rows.iter().zip(&names).zip(&tails) {
                let amount = format!("{mark}{}", bytes(row.sums.usable()));
                let share = percent(row.sums.usable(), whole);
                writeln!(f, "{amount:>13}{}  {share:>7}  {name}{tail}", of(row.sums))?;
            }
            if table.more > 0 {
                let amount = format!("{mark}{}", bytes(table.rest.usable()));
                let share = percent(table.rest.usable(), whole);
                let more = format!("({} more)", number(table.more as i128));
                writeln!(f, "{amount:>13}{}  {share:>7}  {}", of(table.rest), dim(&more, &options))?;
            }
        }
        Ok(())
    }
}
