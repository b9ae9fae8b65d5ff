//! The formats of exports, and the file names that select them.

use std::path::Path;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use memory_export::ProfileFormat;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportFormat {
    /// A format that is made from stacks.
    Stacks(ProfileFormat),
    ChromeTrace,
    OpenMetrics,
    Prometheus,
    /// Tables of any source.
    Parquet,
    V8,
}

/// The formats in the order of the help.
const ALL: [ExportFormat; 11] = {
    use ExportFormat::{ChromeTrace, OpenMetrics, Parquet, Prometheus, Stacks, V8};
    let [a, b, c, d, e, f] = ProfileFormat::ALL;
    let [a, b, c, d, e, f] = [Stacks(a), Stacks(b), Stacks(c), Stacks(d), Stacks(e), Stacks(f)];
    [a, b, c, d, e, f, ChromeTrace, OpenMetrics, Prometheus, Parquet, V8]
};

impl ValueEnum for ExportFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, tools) = match self {
            Self::Stacks(format) => (format.name(), format.tools()),
            Self::ChromeTrace => {
                ("chrome-trace", "Chrome's trace events, counters of a series: ui.perfetto.dev")
            }
            Self::OpenMetrics => ("openmetrics", "`OpenMetrics` 1.0: Prometheus, Grafana"),
            Self::Prometheus => {
                ("prometheus", "The text of Prometheus: the textfile collector of `node_exporter`")
            }
            Self::Parquet => ("parquet", "Parquet, tables of many runs: `DuckDB`, polars, pyarrow"),
            Self::V8 => ("v8", "V8's heap snapshot: Chrome's developer tools, memlab"),
        };
        Some(PossibleValue::new(name).help(tools))
    }
}

impl ExportFormat {
    /// Whether the format is made from reports only.
    pub(crate) fn is_of_reports(self) -> bool {
        matches!(self, Self::ChromeTrace) || self.is_metrics()
    }

    pub(crate) fn is_metrics(self) -> bool {
        matches!(self, Self::OpenMetrics | Self::Prometheus)
    }

    /// Returns the format that a file's name selects; `None` for an unknown name.
    pub(crate) fn guess(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let by_end = match name.rsplit_once('.')?.1 {
            "json" if name.ends_with(".trace.json") => Some(Self::ChromeTrace),
            "openmetrics" | "om" => Some(Self::OpenMetrics),
            "prom" => Some(Self::Prometheus),
            "parquet" => Some(Self::Parquet),
            "heapsnapshot" => Some(Self::V8),
            _ => None,
        };
        by_end.or_else(|| ProfileFormat::from_file_name(name).map(Self::Stacks))
    }

    /// The names of all formats.
    pub(crate) fn names() -> String {
        let names = ALL.iter().filter_map(ValueEnum::to_possible_value);
        names.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
    }
}
