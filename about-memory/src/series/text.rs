//! A series as a table.

use core::fmt;

use crate::escape::push_name;
use crate::number::{self, ByteUnits};

use super::{Series, SeriesRow};

/// Up to this many reports have one column each. For more reports, the table shows the first, the lowest, the highest
/// and the last amount.
const MAX_COLUMNS: usize = 8;
/// A line has at most this many bars. If there are more reports, a bar shows the largest amount of several reports.
const MAX_BARS: usize = 60;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The table of a [`Series`]: for each path the amounts, the growth, and bars.
#[derive(Clone, Copy, Debug)]
pub struct SeriesText<'s> {
    series: &'s Series,
    units: ByteUnits,
    limit: usize,
}

impl Series {
    /// Returns the series as a table.
    pub fn text(&self) -> SeriesText<'_> {
        SeriesText { series: self, units: ByteUnits::Mb, limit: usize::MAX }
    }
}

impl SeriesText<'_> {
    /// Sets the unit of bytes. Default: MB.
    #[must_use]
    pub fn units(mut self, units: ByteUnits) -> Self {
        self.units = units;
        self
    }

    /// Sets the maximum number of rows. Default: all.
    #[must_use]
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }

    fn headings(&self) -> Vec<String> {
        let count = self.series.reports().len();
        let mut headings: Vec<String> = if count <= MAX_COLUMNS {
            (1..=count).map(|n| format!("[{n}]")).collect()
        } else {
            ["[1]", "lowest", "highest", &format!("[{count}]")].map(str::to_owned).into()
        };
        headings.extend(["change", "%"].map(str::to_owned));
        headings
    }

    fn cells(&self, row: &SeriesRow<'_>) -> Vec<String> {
        let amount = |amount: Option<i128>| match amount {
            Some(amount) => {
                let mut text = String::new();
                number::push_amount_in(&mut text, amount, row.units, self.units);
                text
            }
            None => "-".to_owned(),
        };
        let end = |amount: Option<&Option<i128>>| amount.copied().flatten();
        let (first, last) = (end(row.amounts.first()), end(row.amounts.last()));
        let mut cells: Vec<String> = if row.amounts.len() <= MAX_COLUMNS {
            row.amounts.iter().map(|one| amount(*one)).collect()
        } else {
            let known = || row.amounts.iter().copied().flatten();
            [first, known().min(), known().max(), last].map(amount).into()
        };
        let growth = row.growth();
        let sign = if growth > 0 { "+" } else { "" };
        cells.push(if growth == 0 { String::new() } else { format!("{sign}{}", amount(Some(growth))) });
        let mut percent = String::new();
        if let Some(first) = first.filter(|first| *first != 0 && growth != 0) {
            percent.push_str(sign);
            number::push_ratio(&mut percent, growth, first.saturating_abs());
        }
        cells.push(percent);
        cells
    }
}

impl fmt::Display for SeriesText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, report) in self.series.reports().iter().enumerate() {
            writeln!(f, "[{}] {}", i + 1, crate::escape(report))?;
        }
        let mut rows = self.series.rows();
        let more = rows.len().saturating_sub(self.limit);
        if rows.is_empty() {
            return f.write_str("No results found.\n");
        }
        rows.truncate(self.limit);
        let headings = self.headings();
        let cells: Vec<_> = rows.iter().map(|row| self.cells(row)).collect();
        let width = |column: usize| {
            let cells = cells.iter().map(|row| row[column].chars().count());
            cells.chain([headings[column].len()]).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..headings.len()).map(width).collect();
        let line = |f: &mut fmt::Formatter<'_>, cells: &[String]| {
            cells.iter().zip(&widths).try_for_each(|(cell, width)| write!(f, "{cell:>width$}  "))
        };
        let bars: Vec<_> = rows.iter().map(|row| bars(row.amounts)).collect();
        let bars_width = self.series.reports().len().min(MAX_BARS);
        let mut process = None;
        for (i, ((row, cells), bars)) in rows.iter().zip(&cells).zip(&bars).enumerate() {
            if i == 0 || row.process != process {
                process = row.process;
                let name = process.map_or("Total of all processes".into(), crate::escape);
                writeln!(f, "\n{name}\n")?;
                line(f, &headings)?;
                writeln!(f, "{:bars_width$}  path", "")?;
            }
            line(f, cells)?;
            let mut name = String::new();
            push_name(&mut name, row.path);
            writeln!(f, "{bars}  {name}")?;
        }
        if more > 0 {
            writeln!(f, "\n... and {more} more; see --limit")?;
        }
        match self.series.tiny() {
            0 => Ok(()),
            tiny => writeln!(f, "\n({tiny} tiny)"),
        }
    }
}

/// Returns one bar per report, scaled from the lowest to the highest amount of the row. A missing amount is a space.
fn bars(amounts: &[Option<i128>]) -> String {
    let known = || amounts.iter().copied().flatten();
    let (low, high) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
    let share = amounts.len().div_ceil(MAX_BARS).max(1);
    let bar = |amounts: &[Option<i128>]| match amounts.iter().copied().flatten().max() {
        None => ' ',
        // Equal amounts have bars of middle height.
        Some(_) if low == high => BARS[3],
        Some(amount) => {
            let part = (amount - low) as f64 / (high - low) as f64;
            BARS[((part * BARS.len() as f64) as usize).min(BARS.len() - 1)]
        }
    };
    amounts.chunks(share).map(bar).collect()
}
