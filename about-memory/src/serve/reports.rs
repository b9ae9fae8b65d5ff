//! The reports that the page shows, by number.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use memory_export::open_metrics::{self, MetricsForm};
use memory_report::ReportSet;
use serde::Deserialize;

use super::measured_parts::MeasuredParts;
use super::served_list::{ServedEntry, ServedList};
use crate::http::{HttpRefusal, HttpResponse};

#[derive(Clone, Debug)]
pub(super) struct ServedReport {
    pub(super) title: String,
    pub(super) set: Arc<ReportSet>,
    /// The processes that were measured; empty for a file or a difference.
    pub(super) pids: Vec<u32>,
    /// Whether the server was started with this report.
    pub(super) is_given: bool,
    /// Whether the report was measured without private names. A later measurement that replaces it omits private names,
    /// too.
    pub(super) is_anonymized: bool,
    /// Whether a page shows the changes since this report.
    pub(super) is_mark: bool,
    /// The time since 1970 at which the server received the report.
    pub(super) time: Duration,
    /// The largest parts of the set. Empty until they are first needed.
    parts: Arc<OnceLock<Option<MeasuredParts>>>,
}

impl ServedReport {
    fn new(title: String, set: ReportSet, pids: Vec<u32>, is_given: bool) -> Self {
        Self {
            title,
            set: Arc::new(set),
            pids,
            is_given,
            is_anonymized: false,
            is_mark: false,
            time: now(),
            parts: Arc::default(),
        }
    }
}

impl ServedReport {
    /// Returns the time of the measurement; `None` for a file or a difference.
    pub(super) fn measured_at(&self) -> Option<Duration> {
        (!self.pids.is_empty()).then_some(self.time)
    }
}

/// Returns the time since 1970.
pub(super) fn now() -> Duration {
    UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// The page's request for a report.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportRequest {
    /// The number of an earlier report. The page shows the changes since that report.
    pub(super) against: Option<u32>,
    /// The shape that the page knows. If the report has this shape, the answer contains only the amounts.
    #[serde(default)]
    pub(super) shape: String,
}

impl ReportRequest {
    pub(super) fn at(&self, id: u32, reports: &ServedReports) -> Result<HttpResponse, HttpRefusal> {
        let mut set = reports.get(id)?.set;
        if let Some(mark) = self.against {
            set = Arc::new(crate::diff(&reports.get(mark)?.set, &set));
        }
        Ok(HttpResponse::bytes(crate::html::followed(&set, &self.shape)))
    }
}

/// The facts about a measurement that a page requested.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) pids: Vec<u32>,
    pub(super) is_anonymized: bool,
    pub(super) is_mark: bool,
}

pub(super) type ServedReports = ServedList<ServedReport>;

impl ServedEntry for ServedReport {
    const LIST: &'static str = "reports";
    const UNKNOWN: &'static str = "no report has this id";
    const MOST: NonZeroUsize = NonZeroUsize::new(50).expect("50 is not 0");

    fn is_given(&self) -> bool {
        self.is_given
    }
}

impl ServedReports {
    /// Adds a report that the server was started with. Returns its number.
    pub(super) fn give(&self, title: String, set: ReportSet, pids: Vec<u32>) -> u32 {
        self.add(ServedReport::new(title, set, pids, true))
    }

    /// Adds a report that a page requested. Returns its number.
    pub(super) fn add_made(&self, title: String, set: ReportSet, pids: Vec<u32>) -> u32 {
        self.add(ServedReport::new(title, set, pids, false))
    }

    /// Adds a measurement of processes that a page requested. Returns its number.
    pub(super) fn measured(&self, title: String, set: ReportSet, made: Measurement) -> u32 {
        let Measurement { pids, is_anonymized, is_mark } = made;
        self.add(ServedReport { is_anonymized, is_mark, ..ServedReport::new(title, set, pids, false) })
    }

    /// Replaces the set of a measurement by a later set of the same processes. Returns `false` if no measurement of
    /// these processes has this id. A mark is not replaced, because pages show the changes since it.
    pub(super) fn renew(&self, id: u32, set: ReportSet, pids: &[u32]) -> bool {
        let renewed = self.change(id, |report| {
            let is_renewed = !report.is_given && !report.is_mark && report.pids == pids;
            if is_renewed {
                (report.set, report.time) = (Arc::new(set), now());
                report.parts = Arc::default();
            }
            is_renewed
        });
        renewed.unwrap_or(false)
    }

    /// Returns the largest parts of a process in its latest measurement, and the number of the measurement.
    pub(super) fn parts(&self, pid: u32) -> Option<(u32, MeasuredParts)> {
        let of_process = |report: &ServedReport| report.pids == [pid] && !report.set.is_diff();
        let reports = self.list().into_iter().filter(|(_, report)| of_process(report));
        let (id, latest) = reports.max_by_key(|(_, report)| report.time)?;
        // Computed once: pages ask every few seconds, and the tree of a report is large.
        let parts = latest.parts.get_or_init(|| MeasuredParts::new(&latest.set));
        parts.clone().map(|parts| (id, parts))
    }
}

/// Returns a report or a difference as a file: in Firefox's format (`json`), as the text of about:memory (`text`,
/// `verbose`), or as metrics (`openmetrics`, `prometheus`).
pub(super) fn file(id: u32, set: &Arc<ReportSet>, format: &str) -> Result<HttpResponse, HttpRefusal> {
    let metrics = |form| {
        if set.is_diff() {
            return Err(HttpRefusal::new(400, "a difference has no metrics"));
        }
        let mut text = Vec::new();
        open_metrics::write(set, &open_metrics::OpenMetricsOptions::new().form(form), &mut text)
            .map_err(|error| HttpRefusal::new(409, error.to_string()))?;
        Ok(text)
    };
    let (end, text) = match format {
        "json" => {
            let set = Arc::clone(set);
            return Ok(HttpResponse::download(format!("memory-report-{id}.json.gz"), move |out| {
                memory_report::file::write_compressed(out, &set, 6)
            }));
        }
        "text" | "verbose" => ("txt", crate::text(set).verbose(format == "verbose").to_string().into_bytes()),
        "openmetrics" => ("om", metrics(MetricsForm::OpenMetrics)?),
        "prometheus" => ("prom", metrics(MetricsForm::Prometheus)?),
        _ => {
            return Err(HttpRefusal::new(
                400,
                "the formats are json, text, verbose, openmetrics and prometheus",
            ));
        }
    };
    Ok(HttpResponse::download(format!("memory-report-{id}.{end}"), move |out| out.write_all(&text)))
}
