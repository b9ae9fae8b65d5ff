//! Reports as metrics: `OpenMetrics` 1.0, and the text of Prometheus (0.0.4).
//!
//! | metric | type | amounts |
//! | --- | --- | --- |
//! | `memory_report_bytes` | gauge | bytes |
//! | `memory_report_items` | gauge | counts |
//! | `memory_report_events_total` | counter | counts of events since the start |
//! | `memory_report_ratio` | gauge | percentages, 1 is 100 % |
//! | `memory_report_duration_seconds` | gauge | the time that all reporters took; absent for reports from a file |
//! | `memory_report_warnings` | gauge | the number of warnings |
//! | `memory_report_omitted` | gauge | reports without a series: ratios beyond the limit, and negative events |
//!
//! The labels are `process`, `path` and `kind` (`heap`, `nonheap` or `other`). The number of series is limited: see
//! [`OpenMetricsOptions`]. A path is the path of a report or of a whole subtree. A path that ends in `(other)` has the
//! reports of a subtree that have no series of their own. Each report is in one series, so the sum over the paths of
//! one tree is the tree's sum. Different trees describe the same memory in different ways: a sum over several trees has
//! no meaning.
//!
//! Labels contain no addresses, URLs or ids of threads, because these would make new series again and again. `ADDRESS`,
//! `URL` and `(tid=NNN)` replace them, and threads with the same name share a series. A collector reads amounts as
//! doubles, so amounts above 2^53 are rounded.

mod cut;
mod label;

use std::io::{BufWriter, Write};

use memory_report::tree::{Forest, ITSELF, TreeNode};
use memory_report::{Kind, ReportSet, Units};

use crate::error::ExportError;
use cut::{MetricSeries, ReportLeaf, cut};
use label::{escaped, sanitized};

/// The form of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricsForm {
    /// `OpenMetrics` 1.0: `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    #[default]
    OpenMetrics,
    /// Prometheus's text: `text/plain; version=0.0.4`.
    Prometheus,
}

impl MetricsForm {
    /// The content type for the header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Options for writing reports as metrics.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OpenMetricsOptions {
    pub(crate) form: MetricsForm,
    pub(crate) max_series: usize,
    pub(crate) depth: usize,
    pub(crate) threshold: f64,
}

impl Default for OpenMetricsOptions {
    fn default() -> Self {
        Self { form: MetricsForm::OpenMetrics, max_series: 500, depth: 3, threshold: 1.0 }
    }
}

impl OpenMetricsOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the form of the text.
    #[must_use]
    pub fn form(mut self, form: MetricsForm) -> Self {
        self.form = form;
        self
    }

    /// Sets the maximum number of series of reports, for all processes together. The largest amounts get series of
    /// their own. Each process and unit has at least one series for each kind. Default: 500.
    #[must_use]
    pub fn max_series(mut self, series: usize) -> Self {
        self.max_series = series;
        self
    }

    /// Sets the maximum number of names in a path that has a series of its own. Default: 3.
    #[must_use]
    pub fn depth(mut self, names: usize) -> Self {
        self.depth = names;
        self
    }

    /// Sets a percentage: a longer path that holds at least this percentage of its tree also has a series of its own.
    /// Default: 1.
    #[must_use]
    pub fn threshold(mut self, percent: f64) -> Self {
        self.threshold = percent;
        self
    }
}

/// Writes the reports.
///
/// # Errors
///
/// Returns an error if `out` fails.
pub fn write(set: &ReportSet, options: &OpenMetricsOptions, out: impl Write) -> Result<(), ExportError> {
    let forest = Forest::new(set);
    let mut leaves = Vec::new();
    let mut omitted = 0;
    for process in forest.processes() {
        let name = escaped(&sanitized(process.name()));
        for tree in process.trees() {
            collect(set, &name, tree, &mut leaves);
        }
        for line in process.lines() {
            collect(set, &name, line, &mut leaves);
        }
    }
    leaves.retain(|leaf| {
        let is_kept = leaf.units != Units::CountCumulative || leaf.amount >= 0;
        omitted += usize::from(!is_kept);
        is_kept
    });
    let cut = cut(leaves, options);
    omitted += cut.omitted;

    let mut writer = MetricsWriter { form: options.form, out: BufWriter::with_capacity(1 << 16, out) };
    for (units, name, unit, help) in [
        (Units::Bytes, "memory_report_bytes", "bytes", "Memory by path, as about:memory shows it."),
        (Units::Count, "memory_report_items", "", "Things that exist now, by path."),
        (
            Units::CountCumulative,
            "memory_report_events",
            "",
            "Things that happened since the start, by path.",
        ),
        (Units::Percentage, "memory_report_ratio", "ratio", "Shares by path; 1 is 100 %."),
    ] {
        let series: Vec<&MetricSeries> = cut.series.iter().filter(|series| series.units == units).collect();
        if series.is_empty() {
            continue;
        }
        let is_counter = units == Units::CountCumulative;
        writer.family(name, is_counter, unit, help)?;
        let suffix = if is_counter { "_total" } else { "" };
        for MetricSeries { process, path, kind, amount, .. } in series {
            let kind = match kind {
                Kind::Heap => "heap",
                Kind::NonHeap => "nonheap",
                Kind::Other => "other",
            };
            let amount = match units {
                Units::Percentage => hundredths(*amount),
                _ => amount.to_string(),
            };
            let path = escaped(path);
            writeln!(
                writer.out,
                "{name}{suffix}{{process=\"{process}\",path=\"{path}\",kind=\"{kind}\"}} {amount}"
            )?;
        }
    }
    if !set.runs().is_empty() {
        let name = "memory_report_duration_seconds";
        writer.family(name, false, "seconds", "The time that all reporters took.")?;
        let time: f64 = set.runs().iter().map(|run| run.time.as_secs_f64()).sum();
        writeln!(writer.out, "{name} {time:?}")?;
    }
    for (name, help, count) in [
        (
            "memory_report_warnings",
            "Warnings about reports and reporters.",
            set.warnings().len() + forest.warnings().len(),
        ),
        ("memory_report_omitted", "Reports that no series contains.", omitted),
    ] {
        writer.family(name, false, "", help)?;
        writeln!(writer.out, "{name} {count}")?;
    }
    if options.form == MetricsForm::OpenMetrics {
        writer.out.write_all(b"# EOF\n")?;
    }
    writer.out.flush()?;
    Ok(())
}

/// Formats hundredths of a percent as an exact share: 10,000 becomes 1.0000.
fn hundredths(amount: i128) -> String {
    let (whole, part) = (amount.unsigned_abs() / 10_000, amount.unsigned_abs() % 10_000);
    format!("{}{whole}.{part:04}", if amount < 0 { "-" } else { "" })
}

struct MetricsWriter<W: Write> {
    form: MetricsForm,
    out: BufWriter<W>,
}

impl<W: Write> MetricsWriter<W> {
    fn family(&mut self, name: &str, is_counter: bool, unit: &str, help: &str) -> Result<(), ExportError> {
        let kind = if is_counter { "counter" } else { "gauge" };
        // In OpenMetrics, the name of a family has no suffix `_total`; its samples have it.
        let suffix = if is_counter && self.form == MetricsForm::Prometheus { "_total" } else { "" };
        writeln!(self.out, "# TYPE {name}{suffix} {kind}")?;
        if !unit.is_empty() && self.form == MetricsForm::OpenMetrics {
            writeln!(self.out, "# UNIT {name} {unit}")?;
        }
        writeln!(self.out, "# HELP {name}{suffix} {help}")?;
        Ok(())
    }
}

/// Adds the leaves of a tree or line.
fn collect(set: &ReportSet, process: &str, root: TreeNode<'_, '_>, leaves: &mut Vec<ReportLeaf>) {
    let mut left = vec![root];
    while let Some(node) = left.pop() {
        if !node.is_leaf() {
            left.extend(node.children());
            continue;
        }
        let mut path = sanitized(node.path());
        let is_itself = node.name() == ITSELF && !node.path().ends_with(ITSELF);
        if is_itself {
            path += "/";
            path += ITSELF;
        }
        // Only `heap-unclassified` has no report, because the tree computes it. It is heap memory.
        let first = node.first_report() as usize;
        let kind = set.get(first).map_or(Kind::Heap, |report| report.kind);
        leaves.push(ReportLeaf {
            process: process.to_owned(),
            path,
            kind,
            units: node.units(),
            amount: node.amount(),
            always: node.path() == "explicit/heap-unclassified",
        });
    }
}
