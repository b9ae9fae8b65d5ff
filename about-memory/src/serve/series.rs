//! Amounts over all reports, in the order of their times.

use std::time::Duration;

use memory_export::chrome_trace;
use serde::Deserialize;
use serde_json::{Value, json};

use super::processes::SnapshotProcesses;
use super::reports::ServedReports;
use super::stacks::AllStacks;
use crate::http::{HttpRefusal, HttpResponse};
use crate::session::Session;
use crate::{Series, SeriesOptions};

/// A path has at most this many bytes.
const MAX_PATH: usize = 4096;
const MAX_DEPTH: u32 = 10;
/// An answer has at most this many rows: bytes before counts and percentages, the largest amount in the last report
/// first.
const MAX_ROWS: usize = 200;

/// A request for amounts over time: at a path and some levels below it, or at each tree if the path is empty.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeriesRequest {
    #[serde(default)]
    path: String,
    #[serde(default)]
    depth: u32,
    /// If this is set, the answer is a file in this format.
    #[serde(default)]
    format: Option<SeriesFormat>,
}

/// A format of a file with all rows.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SeriesFormat {
    /// Counters over time as Chrome's trace events.
    ChromeTrace,
    /// A table.
    Tsv,
}

/// The sources of amounts, and the other data that pages took from processes.
pub(super) struct SeriesSources<'a> {
    pub(super) reports: &'a ServedReports,
    pub(super) stacks: &'a AllStacks,
    pub(super) taken: &'a SnapshotProcesses,
    pub(super) session: &'a Session,
}

impl SeriesRequest {
    pub(super) fn run(self, of: &SeriesSources<'_>) -> Result<HttpResponse, HttpRefusal> {
        if self.path.len() > MAX_PATH || self.depth > MAX_DEPTH {
            let reason = format!("a path may have at most {MAX_PATH} bytes, and {MAX_DEPTH} levels below it");
            return Err(HttpRefusal::new(400, reason));
        }
        let mut options = SeriesOptions::new().depth(self.depth);
        if !self.path.is_empty() {
            options = options.path(self.path);
        }
        if self.format.is_some() {
            // A file contains all rows.
            options = options.threshold(0.0);
        }
        let mut series = Series::new(options);
        let mut list = Vec::new();
        let (mut titles, mut times) = (Vec::new(), Vec::new());
        let mut reports = of.reports.list();
        // A difference is not an amount at one time.
        reports.retain(|(_, report)| !report.set.is_diff());
        // A page may have replaced an earlier report by a new measurement.
        reports.sort_by_key(|(_, report)| report.time);
        for (id, report) in reports {
            series.add(report.title.clone(), &report.set);
            let time = report.measured_at();
            list.push(json!({
                "id": id, "title": report.title, "time": time.map(milliseconds), "mark": report.is_mark,
            }));
            titles.push(report.title);
            times.push(time);
        }
        match self.format {
            None => {}
            Some(SeriesFormat::Tsv) => {
                let text = table(&series, &titles);
                return Ok(HttpResponse::download("reports.tsv", move |out| out.write_all(text.as_bytes())));
            }
            Some(SeriesFormat::ChromeTrace) => return trace(&series, &times),
        }
        let rows = series.rows();
        let shown = rows.iter().take(MAX_ROWS).map(|row| {
            let number = |amount: &Option<i128>| amount.map(super::answers::number);
            let amounts: Vec<_> = row.amounts.iter().map(number).collect();
            json!({ "path": row.path, "units": row.units.to_string(), "amounts": amounts })
        });
        Ok(HttpResponse::json(&json!({
            "reports": list, "rows": shown.collect::<Vec<_>>(), "taken": taken(of),
            "leftOut": series.tiny() + rows.len().saturating_sub(MAX_ROWS),
        })))
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the stacks and heap snapshots that pages took from processes, each with its time.
fn taken(of: &SeriesSources<'_>) -> Vec<Value> {
    let stacks = of.stacks.list().into_iter().filter_map(|(id, stacks)| {
        let time = milliseconds(stacks.made_at()?);
        Some(json!({ "kind": "stacks", "id": id, "title": stacks.title, "time": time }))
    });
    let snapshots = of.session.snapshots();
    let snapshots = snapshots.iter().filter_map(|info| {
        of.taken.process_of(info.id)?;
        let time = info.creation_time? / 1000;
        Some(json!({ "kind": "snapshot", "id": info.id.0, "title": info.title, "time": time }))
    });
    stacks.chain(snapshots).collect()
}

/// Makes a line for each row, with a column for each report.
fn table(series: &Series, titles: &[String]) -> String {
    let plain = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    let mut text = "#path\tunits".to_owned();
    for name in titles {
        text += &format!("\t{}", plain(name));
    }
    text.push('\n');
    for row in series.rows() {
        text += &format!("{}\t{}", plain(row.path), row.units);
        for amount in row.amounts {
            text += &amount.map_or("\t".to_owned(), |amount| format!("\t{amount}"));
        }
        text.push('\n');
    }
    text
}

fn trace(series: &Series, times: &[Option<Duration>]) -> Result<HttpResponse, HttpRefusal> {
    let known = times.iter().map(|time| u64::try_from((*time)?.as_micros()).ok()).collect();
    let times = Series::point_times(known, times.len());
    let mut text = Vec::new();
    chrome_trace::write(&series.counters(times), &mut text)
        .map_err(|error| HttpRefusal::new(409, error.to_string()))?;
    Ok(HttpResponse::download("reports.trace.json", move |out| out.write_all(&text)))
}
