//! A history as text.

use core::cmp::Reverse;
use core::fmt::{self, Display};

use super::mapped::MappedMemory;
use super::{GrownRow, UsageHistory, UsageRow};
use crate::dump::DumpTime;
use crate::print::{blocks, number, percent};
use crate::program::ProgramOptions;
use crate::program::chart::{bars, chart};
use crate::program::holder::{BlockHolder, names};
use crate::program::line::{bold, bytes, dim, tails};
use crate::program::overview::{HeapOverview, LATE};
use crate::recording::{LIFE_LIMITS, MappedLine, UsageLine};

/// The number of lines of the chart.
const LINES: usize = 8;

/// The number of columns of the bars in a table.
const BARS: usize = 20;

/// A history as text, limited to the width in its options. Its `Display` writes the text.
#[derive(Debug)]
pub struct HistoryText<'h> {
    history: &'h UsageHistory,
    rows: usize,
    options: &'h ProgramOptions,
}

impl<'h> HistoryText<'h> {
    pub(super) fn new(history: &'h UsageHistory, rows: usize, options: &'h ProgramOptions) -> Self {
        Self { history, rows, options }
    }
}

impl Display for HistoryText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UsageHistory { outline, total, sites, types, threads, .. } = self.history;
        HeapOverview::from_outline(outline, DumpTime::End).life(f)?;
        if outline.began_late {
            f.write_str(LATE)?;
        }
        if outline.older.blocks > 0 {
            let (size, count) = (bytes(signed(outline.older.bytes)), blocks(outline.older.blocks.into()));
            writeln!(f, "Before the recording: {size} in {count}.")?;
        }
        let length = outline.end.time.as_secs_f64();
        self.title(f, "Live bytes over the time")?;
        for line in chart(&total.live, LINES, self.options.width, length) {
            writeln!(f, "{line}")?;
        }
        let rate =
            total.made.iter().copied().max().unwrap_or_default() as f64 * 1e9 / self.history.step().max(1.0);
        let all = bars(&total.made, self.options.width.saturating_sub(12));
        self.title(f, &format!("Allocations over the time, at most {} a second", number(rate as i128)))?;
        writeln!(f, "{:12}{}", "", all.trim_end())?;
        for (name, rows) in [("site", sites), ("type", types), ("thread", threads)] {
            self.memory(f, name, rows)?;
        }
        self.mapped(f)?;
        self.allocations(f, sites)?;
        self.temporary(f, sites)?;
        self.sizes(f, total)?;
        self.lives(f, total)?;
        self.grown(f)?;
        self.pairs(f)
    }
}

impl HistoryText<'_> {
    fn title(&self, f: &mut fmt::Formatter<'_>, title: &str) -> fmt::Result {
        writeln!(f, "\n{}", bold(title, self.options))
    }

    /// Writes lines with a name and a place, after amounts that take `before` columns.
    fn named<'r>(
        &self,
        f: &mut fmt::Formatter<'_>,
        before: usize,
        rows: impl Iterator<Item = (String, &'r BlockHolder, &'r str)>,
    ) -> fmt::Result {
        let rows: Vec<_> = rows.collect();
        let holders: Vec<&BlockHolder> = rows.iter().map(|(_, holder, _)| *holder).collect();
        let places: Vec<String> = rows.iter().map(|(_, _, place)| (*place).to_owned()).collect();
        let room = self.options.width.saturating_sub(before);
        let has_places = places.iter().any(|place| !place.is_empty());
        let width = if has_places { room * 3 / 5 } else { room };
        let names = names(&holders, width, room, self.options);
        let tails = tails(&names, &places, room, before + 4, self.options);
        for (((amounts, _, _), name), tail) in rows.iter().zip(&names).zip(&tails) {
            writeln!(f, "{amounts}{name}{tail}")?;
        }
        Ok(())
    }

    fn more(&self, f: &mut fmt::Formatter<'_>, rows: usize, before: usize) -> fmt::Result {
        match rows.saturating_sub(self.rows) {
            0 => Ok(()),
            more => writeln!(
                f,
                "{:before$}{}",
                "",
                dim(&format!("({} more)", number(more as i128)), self.options)
            ),
        }
    }

    /// Writes the table of live bytes over time.
    fn memory(&self, f: &mut fmt::Formatter<'_>, name: &str, rows: &[UsageRow]) -> fmt::Result {
        let time = "over the time";
        self.title(
            f,
            &format!("{:>11}  {:>11}  {:>11}  {time:BARS$}  by {name}", "highest", "at peak", "at end"),
        )?;
        let amounts = |line: &UsageLine| {
            let size = |amount: u64| bytes(amount.into());
            let (highest, at_peak, at_end) = (size(line.highest), size(line.at_peak), size(line.at_end));
            format!("{highest:>11}  {at_peak:>11}  {at_end:>11}  {:BARS$}  ", bars(&line.live, BARS))
        };
        let before = 3 * 13 + BARS + 2;
        let shown = rows.iter().take(self.rows);
        self.named(f, before, shown.map(|row| (amounts(&row.line), &row.holder, &*row.place)))?;
        self.more(f, rows.len(), before)
    }

    /// Writes the table of mapped memory over time, if the program mapped memory.
    fn mapped(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MappedMemory { total, rows } = &self.history.mapped;
        if rows.is_empty() {
            return Ok(());
        }
        let amounts = |line: &MappedLine| {
            let [highest, at_peak, at_end] =
                [line.highest, line.at_peak, line.at_end].map(|amount| bytes(amount.into()));
            format!("{highest:>11}  {at_peak:>11}  {at_end:>11}  {:BARS$}  ", bars(&line.live, BARS))
        };
        let time = "over the time";
        let by = "mapped with mmap, by site";
        self.title(
            f,
            &format!("{:>11}  {:>11}  {:>11}  {time:BARS$}  {by}", "highest", "at peak", "at end"),
        )?;
        if rows.len() > 1 {
            let count = number(total.mappings.into());
            writeln!(f, "{}{}", amounts(total), dim(&format!("(all {count} mappings)"), self.options))?;
        }
        let before = 3 * 13 + BARS + 2;
        let shown = rows.iter().take(self.rows);
        self.named(f, before, shown.map(|row| (amounts(&row.line), &row.holder, &*row.place)))?;
        self.more(f, rows.len(), before)
    }

    /// Writes the table of the sites with the most allocations.
    fn allocations(&self, f: &mut fmt::Formatter<'_>, sites: &[UsageRow]) -> fmt::Result {
        self.title(
            f,
            &format!(
                "{:>11}  {:>11}  {:>9}  {:>11}  {:>11}  most by site",
                "allocations", "bytes", "temporary", "median size", "median life"
            ),
        )?;
        let mut rows: Vec<&UsageRow> = sites.iter().filter(|row| row.line.allocations > 0).collect();
        rows.sort_by_key(|row| Reverse(row.line.allocations));
        let amounts = |line: &UsageLine| {
            let share = percent(line.temporary.into(), line.allocations.into());
            format!(
                "{:>11}  {:>11}  {share:>9}  {:>11}  {:>11}  ",
                number(line.allocations.into()),
                bytes(signed(line.allocated)),
                usual_size(line),
                usual_life(line)
            )
        };
        let before = 4 * 13 + 11;
        let shown = rows.iter().take(self.rows);
        self.named(f, before, shown.map(|row| (amounts(&row.line), &row.holder, &*row.place)))?;
        self.more(f, rows.len(), before)
    }

    /// Writes the table of the sites with the most temporary allocations.
    fn temporary(&self, f: &mut fmt::Formatter<'_>, sites: &[UsageRow]) -> fmt::Result {
        let total = &self.history.total;
        let mut rows: Vec<&UsageRow> = sites.iter().filter(|row| row.line.temporary > 0).collect();
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_by_key(|row| Reverse(row.line.temporary));
        let share = percent(total.temporary.into(), total.allocations.into());
        self.title(
            f,
            &format!(
                "Temporary allocations, freed before their thread's next one: {}, {share}",
                number(total.temporary.into())
            ),
        )?;
        let amounts = |line: &UsageLine| {
            let share = percent(line.temporary.into(), total.temporary.into());
            format!("{:>11}  {share:>7}  ", number(line.temporary.into()))
        };
        let before = 13 + 9;
        let shown = rows.iter().take(self.rows);
        self.named(f, before, shown.map(|row| (amounts(&row.line), &row.holder, &*row.place)))?;
        self.more(f, rows.len(), before)
    }

    /// Writes a table of classes with their counts, from the first class with a count to the last.
    fn classes(&self, f: &mut fmt::Formatter<'_>, rows: &[(String, u64)]) -> fmt::Result {
        let first = rows.iter().position(|(_, count)| *count > 0);
        let last = rows.iter().rposition(|(_, count)| *count > 0);
        let (Some(first), Some(last)) = (first, last) else { return Ok(()) };
        let rows = &rows[first..=last];
        let sum: u64 = rows.iter().map(|(_, count)| count).sum();
        let most = rows.iter().map(|(_, count)| *count).max().unwrap_or_default().max(1);
        let room = self.options.width.saturating_sub(42) as u128;
        for (name, count) in rows {
            let bar = "█".repeat((u128::from(*count) * room / u128::from(most)) as usize);
            let share = percent((*count).into(), sum.into());
            let line = format!("{name:>17}  {:>11}  {share:>7}  {bar}", number((*count).into()));
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn sizes(&self, f: &mut fmt::Formatter<'_>, total: &UsageLine) -> fmt::Result {
        self.title(
            f,
            &format!("{:>17}  {:>11}  {:>7}  of allocations and reallocations", "size", "number", "share"),
        )?;
        let rows: Vec<(String, u64)> =
            total.sizes.iter().enumerate().map(|(class, count)| (size_name(class), *count)).collect();
        self.classes(f, &rows)
    }

    fn lives(&self, f: &mut fmt::Formatter<'_>, total: &UsageLine) -> fmt::Result {
        self.title(f, &format!("{:>17}  {:>11}  {:>7}  of freed blocks", "life-time", "number", "share"))?;
        let rows: Vec<(String, u64)> =
            total.lives.iter().enumerate().map(|(class, count)| (life_name(class), *count)).collect();
        self.classes(f, &rows)
    }

    fn grown(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = &self.history.grown;
        if rows.is_empty() {
            return Ok(());
        }
        self.title(
            f,
            &format!(
                "{:>11}  {:>9}  {:>9}  {:>23}  only grew, by site",
                "copied", "moves", "blocks", "the largest"
            ),
        )?;
        let amounts = |row: &GrownRow| {
            let (from, to, _) = row.largest;
            let largest = format!("{} → {}", bytes(from.into()), bytes(to.into()));
            let (copied, moves, count) =
                (bytes(signed(row.copied)), number(row.moves.into()), number(row.blocks.into()));
            format!("{copied:>11}  {moves:>9}  {count:>9}  {largest:>23}  ")
        };
        let before = 13 + 2 * 11 + 25;
        let shown = rows.iter().take(self.rows);
        self.named(f, before, shown.map(|row| (amounts(row), &row.holder, &*row.place)))?;
        self.more(f, rows.len(), before)
    }

    fn pairs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UsageHistory { pairs, other_pairs, .. } = self.history;
        if pairs.is_empty() {
            return Ok(());
        }
        self.title(
            f,
            &format!("{:>11}  {:>11}  allocated by one thread, freed by another", "blocks", "bytes"),
        )?;
        for pair in pairs.iter().take(self.rows) {
            let (count, size) = (number(pair.freed.blocks.into()), bytes(signed(pair.freed.bytes)));
            let room = self.options.width.saturating_sub(2 * 13 + 4) / 2;
            let names = [&pair.allocated_by, &pair.freed_by].map(|name| BlockHolder::plain(name.clone()));
            let [from, to] = names.map(|name| name.name(room, self.options));
            writeln!(f, "{count:>11}  {size:>11}  {from} → {to}")?;
        }
        let further = &pairs[pairs.len().min(self.rows)..];
        let mut rest = *other_pairs;
        for pair in further {
            rest.blocks += pair.freed.blocks;
            rest.bytes += pair.freed.bytes;
        }
        if rest.blocks > 0 {
            let (count, size) = (number(rest.blocks.into()), bytes(signed(rest.bytes)));
            writeln!(f, "{count:>11}  {size:>11}  {}", dim("(other pairs)", self.options))?;
        }
        Ok(())
    }
}

fn signed(amount: u128) -> i128 {
    i128::try_from(amount).unwrap_or(i128::MAX)
}

/// The class that contains the median.
fn middle(classes: &[u64]) -> Option<usize> {
    let sum: u64 = classes.iter().sum();
    let mut before = 0;
    classes.iter().position(|count| {
        before += count;
        sum > 0 && before >= sum.div_ceil(2)
    })
}

/// The size that half of the blocks do not exceed.
fn usual_size(line: &UsageLine) -> String {
    middle(&line.sizes).map_or_else(String::new, |class| format!("≤ {}", short_bytes(class)))
}

/// The time after which half of the freed blocks were freed.
fn usual_life(line: &UsageLine) -> String {
    middle(&line.lives).map_or_else(|| "-".to_owned(), life_name)
}

/// The largest size of a class.
fn top(class: usize) -> u128 {
    class.checked_sub(1).map_or(0, |power| 1 << power)
}

/// The largest size of a class in a readable form, such as `64 KiB`.
fn short_bytes(class: usize) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = class.saturating_sub(1);
    if class == 0 {
        "0 B".to_owned()
    } else {
        format!("{} {}", 1_u32 << (power % 10), units[(power / 10).min(6)])
    }
}

fn size_name(class: usize) -> String {
    match class {
        0..=2 => bytes(signed(top(class))),
        _ => format!("up to {}", short_bytes(class)),
    }
}

fn life_name(class: usize) -> String {
    match LIFE_LIMITS.get(class) {
        None => "≥ 100 s".to_owned(),
        Some(nanoseconds) => {
            let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
            let (unit, name) = units.into_iter().find(|(unit, _)| nanoseconds >= unit).unwrap_or((1, "ns"));
            format!("< {} {name}", nanoseconds / unit)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_names() {
        assert_eq!(
            [0, 1, 2, 3, 7, 11, 31].map(size_name),
            ["0 B", "1 B", "2 B", "up to 4 B", "up to 64 B", "up to 1 KiB", "up to 1 GiB"]
        );
        assert_eq!([0, 3, 6, 9].map(life_name), ["< 1 µs", "< 1 ms", "< 1 s", "≥ 100 s"]);
        assert_eq!(middle(&[0, 2, 1, 1]), Some(1));
        assert_eq!(middle(&[0, 0]), None);
    }
}
