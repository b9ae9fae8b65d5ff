//! The answer first: the sites, types and crates that hold the most memory.

use core::fmt::{self, Display};

use rustc_hash::FxHashMap;

use super::ProgramOptions;
use super::holder::{Holder, HolderKey, Holders};
use super::line::{bold, bytes, cut, dim, end};
use crate::amounts::{mark, number, percent};
use crate::records::{Analysis, Sums};

/// The number of rows of a table.
const ROWS: usize = 5;

/// The largest sites, types and crates of a heap. Its `Display` gives small tables.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// The whole heap.
    pub total: Sums,
    /// The tables: by site, by type, by crate.
    pub tables: Vec<SummaryTable>,
    estimated: bool,
    width: usize,
    colour: bool,
}

/// The largest holders of memory of one kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SummaryTable {
    /// What the rows are.
    pub by: HolderKey,
    /// The largest rows, the largest first.
    pub rows: Vec<SummaryRow>,
    /// The number of further rows.
    pub more: usize,
    /// The sums of further rows.
    pub rest: Sums,
}

/// One holder of memory.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SummaryRow {
    /// The function, type or crate.
    pub name: String,
    /// The source line of a function; empty if it is unknown or the row is no function.
    pub place: String,
    /// Its blocks and bytes.
    pub sums: Sums,
}

impl Summary {
    /// Sums up the blocks that the filters of an analysis keep. The analysis should have whole stacks and all records.
    pub fn new(analysis: &Analysis, options: &ProgramOptions) -> Self {
        let holders = Holders::new(analysis, options);
        let mut keys = vec![HolderKey::Site, HolderKey::Type, HolderKey::Crate];
        keys.retain(|key| *key != HolderKey::Type || analysis.has_types());
        let mut rows: Vec<Vec<(Holder, Sums)>> = vec![Vec::new(); keys.len()];
        let mut total = Sums::default();
        let room = options.width.saturating_sub(AMOUNTS) * 3 / 5;
        for record in analysis.sections.iter().flat_map(|section| &section.records) {
            total.add(record.sums);
            for (rows, holder) in rows.iter_mut().zip(holders.of(record, &keys, room)) {
                rows.push((holder, record.sums));
            }
        }
        let tables = keys.into_iter().zip(rows).map(|(key, rows)| Rows::of(rows).table(key)).collect();
        Self {
            total,
            tables,
            estimated: analysis.sections.iter().any(|section| section.estimated),
            width: options.width,
            colour: options.colour,
        }
    }
}

/// Columns before the name of a row.
const AMOUNTS: usize = 24;

/// The sums of each holder by its whole name, the name to show, and the bytes of each of its places.
#[derive(Default)]
struct Rows(FxHashMap<String, (String, Sums, FxHashMap<String, i128>)>);

impl Rows {
    fn of(holders: Vec<(Holder, Sums)>) -> Self {
        let mut rows = Self::default();
        for (Holder { whole, name, place }, sums) in holders {
            let (_, row, places) =
                rows.0.entry(whole).or_insert_with(|| (name, Sums::default(), FxHashMap::default()));
            row.add(sums);
            *places.entry(place).or_default() += sums.usable();
        }
        rows
    }

    fn table(self, by: HolderKey) -> SummaryTable {
        let mut rows: Vec<(String, SummaryRow)> = self
            .0
            .into_iter()
            .map(|(whole, (name, sums, places))| {
                let place =
                    places.into_iter().max_by(|a, b| a.1.abs().cmp(&b.1.abs()).then_with(|| b.0.cmp(&a.0)));
                (whole, SummaryRow { name, place: place.map(|(place, _)| place).unwrap_or_default(), sums })
            })
            .collect();
        rows.sort_by(|(a, x), (b, y)| {
            y.sums.usable().abs().cmp(&x.sums.usable().abs()).then_with(|| a.cmp(b))
        });
        let further = rows.split_off(rows.len().min(ROWS));
        let mut rest = Sums::default();
        further.iter().for_each(|(_, row)| rest.add(row.sums));
        // Two names that look alike when they are short are shown whole.
        let short: Vec<String> = rows.iter().map(|(_, row)| row.name.clone()).collect();
        let is_alone = |name: &String| short.iter().filter(|other| *other == name).count() == 1;
        let row = |(whole, row): (String, SummaryRow)| {
            let name = if is_alone(&row.name) { row.name } else { whole };
            SummaryRow { name, ..row }
        };
        SummaryTable { by, rows: rows.into_iter().map(row).collect(), more: further.len(), rest }
    }
}

impl Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = ProgramOptions { width: self.width, colour: self.colour, ..ProgramOptions::default() };
        let whole = self.total.usable();
        let mark = mark(self.estimated);
        for (index, table) in self.tables.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            writeln!(
                f,
                "{}",
                bold(&format!("{:>13}  {:>7}  by {}", "bytes", "share", table.by.name()), &options)
            )?;
            let names: Vec<String> =
                table.rows.iter().map(|row| cut(&row.name, self.width.saturating_sub(AMOUNTS))).collect();
            let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
            for (row, name) in table.rows.iter().zip(&names) {
                let amount = format!("{mark}{}", bytes(row.sums.usable()));
                let room = self.width.saturating_sub(AMOUNTS + longest + "  ".len());
                let padding = " ".repeat(longest - name.chars().count());
                let place = dim(&end(&row.place, room), &options);
                let line = format!(
                    "{amount:>13}  {:>7}  {}{padding}  {place}",
                    percent(row.sums.usable(), whole),
                    name
                );
                writeln!(f, "{}", line.trim_end())?;
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
