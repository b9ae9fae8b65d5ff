//! `about-memory series`: amounts over time, from many report files.

use std::io::{self, Write};

use about_memory::{ByteUnits, Series, SeriesOptions, SeriesSort};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::input::{InputArgument, ReadLimits};
use super::view::{UnitsName, percent};
use super::{Failure, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory series monday.json.gz tuesday.json.gz wednesday.json.gz
  about-memory series reports/*.json.gz --path explicit --depth 1 --threshold 5 --sort growth
  about-memory series reports/*.json.gz --path explicit/cache --path resident --units auto
  about-memory series reports/*.json.gz --path explicit --process web --by-process --json

Name the files in the order of their times. Series are sums over all processes.";

#[derive(Args)]
pub(crate) struct SeriesCommand {
    /// The report files, the earliest first.
    #[arg(required = true)]
    files: Vec<InputArgument>,
    /// Choose this path. Repeatable. [default: each tree, and each report outside of trees]
    #[arg(long, value_name = "PATH")]
    path: Vec<String>,
    /// Show at most this many levels. Each path is level 0.
    #[arg(long, value_name = "LEVELS", default_value_t = 0)]
    depth: usize,
    /// Leave out entries below this percentage of their tree. The comparison is between the largest amounts in all
    /// files.
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    threshold: f64,
    /// Show only processes whose name contains this text.
    #[arg(long, value_name = "NAME")]
    process: Option<String>,
    /// Show each process, after the total.
    #[arg(long)]
    by_process: bool,
    /// The order of entries.
    #[arg(long, value_name = "ORDER", default_value = "amount")]
    sort: SeriesOrder,
    /// The unit of bytes.
    #[arg(long, value_name = "UNITS", default_value = "mb")]
    units: UnitsName,
    /// Show at most this many rows of each table. [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Write JSON instead of text. The JSON contains each path with its amount in each file.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: ReadLimits,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SeriesOrder {
    /// The largest amount in the last file first.
    Amount,
    /// The largest change first.
    Growth,
    /// By path.
    Name,
}

impl SeriesCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.files.iter().filter(|file| file.is_stdin()).count() > 1 {
            return Err(Failure::Usage("standard input can be given only once".to_owned()));
        }
        let options = SeriesOptions::new()
            .depth(u32::try_from(self.depth).unwrap_or(u32::MAX))
            .threshold(self.threshold)
            .by_process(self.by_process)
            .sort(match self.sort {
                SeriesOrder::Amount => SeriesSort::Amount,
                SeriesOrder::Growth => SeriesSort::Growth,
                SeriesOrder::Name => SeriesSort::Name,
            });
        let options = self.path.into_iter().fold(options, SeriesOptions::path);
        let options = self.process.into_iter().fold(options, SeriesOptions::process);
        let mut series = Series::new(options);
        for file in &self.files {
            series.add(file.name(), &file.read(&self.reading)?);
        }
        series.missing().for_each(|path| say(&format!("{path}: no file has a report with this path")));
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let written = if self.json {
            write_json(&mut out, &series, self.limit.unwrap_or(usize::MAX))
        } else {
            write_text(&mut out, &series, self.units.units(), self.limit)
        };
        written.and_then(|()| out.flush()).map_err(Failure::Output)
    }
}

fn write_text(
    mut out: impl Write,
    series: &Series,
    units: ByteUnits,
    limit: Option<usize>,
) -> io::Result<()> {
    let text = series.text().units(units);
    match limit {
        Some(rows) => write!(out, "{}", text.limit(rows)),
        None => write!(out, "{text}"),
    }
}

#[derive(Serialize)]
struct JsonRow<'s> {
    process: Option<&'s str>,
    path: &'s str,
    units: String,
    amounts: &'s [Option<i128>],
}

/// Writes at most `most` rows, and the number of the other rows. Rows with different units, and rows below other rows,
/// have no sum.
fn write_json(mut out: impl Write, series: &Series, most: usize) -> io::Result<()> {
    out.write_all(b"{\n \"version\": 1,\n \"files\": ")?;
    serde_json::to_writer(&mut out, series.reports())?;
    out.write_all(b",\n \"rows\": [")?;
    let mut before = "\n  ";
    let rows = series.rows();
    let rest = rows.len().saturating_sub(most);
    for row in rows.into_iter().take(most) {
        out.write_all(before.as_bytes())?;
        let (process, path, units, amounts) = (row.process, row.path, row.units.to_string(), row.amounts);
        serde_json::to_writer(&mut out, &JsonRow { process, path, units, amounts })?;
        before = ",\n  ";
    }
    write!(out, "\n ],\n \"rest\": {{\"rows\": {rest}}}\n}}\n")
}
