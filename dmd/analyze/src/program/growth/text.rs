//! Growth as text.

use core::fmt::{self, Display};

use super::{GrowthRow, HeapGrowth, KEYS, growth, more_blocks};
use crate::print::number;
use crate::program::ProgramOptions;
use crate::program::holder::{BlockHolder, names};
use crate::program::line::{bold, bytes, dim, tails};
use crate::program::overview::{LATE, seconds};
use crate::program::summary::for_names;
use crate::recording::LiveSums;

/// Growth as text, limited to the width in its options. Its `Display` writes the text.
#[derive(Debug)]
pub struct GrowthText<'g> {
    growth: &'g HeapGrowth,
    rows: usize,
    options: &'g ProgramOptions,
}

/// Columns before the name of a row.
const AMOUNTS: usize = 3 * 13 + 12;

impl<'g> GrowthText<'g> {
    pub(super) fn new(growth: &'g HeapGrowth, rows: usize, options: &'g ProgramOptions) -> Self {
        Self { growth, rows, options }
    }

    fn table(&self, f: &mut fmt::Formatter<'_>, key: usize, all: &[GrowthRow]) -> fmt::Result {
        let title = format!(
            "{:>12} {:>12} {:>12} {:>11}  by {}",
            "growth",
            "before",
            "after",
            "blocks",
            KEYS[key].name()
        );
        writeln!(f, "\n{}", bold(&title, self.options))?;
        let grown = all.iter().filter(|row| row.growth() > 0).count();
        let (shown, more) = all[..grown].split_at(grown.min(self.rows));
        let room = self.options.width.saturating_sub(AMOUNTS);
        let holders: Vec<&BlockHolder> = shown.iter().map(|row| &row.holder).collect();
        let names = names(&holders, for_names(KEYS[key], room), room, self.options);
        let places: Vec<String> = shown.iter().map(|row| row.place.clone()).collect();
        let tails = tails(&names, &places, room, AMOUNTS + 4, self.options);
        for ((row, name), tail) in shown.iter().zip(&names).zip(&tails) {
            writeln!(f, "{}{name}{tail}", amounts(&row.sums))?;
        }
        self.rest(f, more, "more that grew")?;
        let shrunk: Vec<&GrowthRow> = all[grown..].iter().filter(|row| row.growth() < 0).collect();
        self.rest(f, shrunk, "that shrank")
    }

    /// Writes the number and the sums of rows as one line.
    fn rest<'r>(
        &self,
        f: &mut fmt::Formatter<'_>,
        rows: impl IntoIterator<Item = &'r GrowthRow>,
        what: &str,
    ) -> fmt::Result {
        let mut sums = [LiveSums::default(); 2];
        let mut count = 0;
        for row in rows {
            super::add(&mut sums, row.sums);
            count += 1;
        }
        match count {
            0 => Ok(()),
            _ => {
                let what = format!("({} {what})", number(count));
                writeln!(f, "{}{}", amounts(&sums), dim(&what, self.options))
            }
        }
    }
}

impl Display for GrowthText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeapGrowth { times: [from, to], total, tables, began_late, .. } = self.growth;
        let title = format!(
            "Growth from {} to {}: {} in {} blocks, from {} to {}.",
            seconds(from.as_secs_f64()),
            seconds(to.as_secs_f64()),
            signed(growth(total), bytes),
            signed(more_blocks(total), number),
            size(&total[0]),
            size(&total[1])
        );
        writeln!(f, "{}", bold(&title, self.options))?;
        if *began_late {
            f.write_str(LATE)?;
        }
        tables.iter().enumerate().try_for_each(|(key, rows)| self.table(f, key, rows))
    }
}

fn size(sums: &LiveSums) -> String {
    bytes(i128::try_from(sums.bytes).unwrap_or(i128::MAX))
}

/// An amount with its sign.
fn signed(amount: i128, text: impl Fn(i128) -> String) -> String {
    let plus = if amount > 0 { "+" } else { "" };
    format!("{plus}{}", text(amount))
}

fn amounts(sums: &[LiveSums; 2]) -> String {
    let [before, after] = sums.each_ref().map(size);
    let (grown, blocks) = (signed(growth(sums), bytes), signed(more_blocks(sums), number));
    format!("{grown:>12} {before:>12} {after:>12} {blocks:>11}  ")
}
