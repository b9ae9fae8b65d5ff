//! The formats of exports, and the file names that select them.

use std::path::Path;

use clap::ValueEnum;
use memory_export::ProfileFormat;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// pprof: go tool pprof, Pyroscope, Parca, speedscope
    Pprof,
    /// DHAT's JSON: `dh_view.html` of Valgrind
    Dhat,
    /// speedscope's JSON: speedscope
    Speedscope,
    /// heaptrack's text: `heaptrack_gui`, `heaptrack_print`
    Heaptrack,
    /// The Firefox Profiler's JSON: profiler.firefox.com, samply load
    FirefoxProfiler,
    /// Folded stacks: inferno-flamegraph, speedscope, ui.perfetto.dev
    Folded,
    /// Chrome's trace events, counters of a series: ui.perfetto.dev
    ChromeTrace,
    /// `OpenMetrics` 1.0: Prometheus, Grafana
    Openmetrics,
    /// The text of Prometheus: the textfile collector of `node_exporter`
    Prometheus,
    /// Parquet, tables of many runs: `DuckDB`, polars, pyarrow
    Parquet,
    /// V8's heap snapshot: Chrome's developer tools, memlab
    V8,
}

/// The kind of source that a format is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormatSource {
    Stacks(ProfileFormat),
    Reports,
    Graph,
    /// Any of these sources.
    Tables,
}

impl ExportFormat {
    pub(crate) fn kind(self) -> FormatSource {
        match self {
            Self::ChromeTrace | Self::Openmetrics | Self::Prometheus => FormatSource::Reports,
            Self::V8 => FormatSource::Graph,
            Self::Parquet => FormatSource::Tables,
            Self::Pprof => FormatSource::Stacks(ProfileFormat::Pprof),
            Self::Dhat => FormatSource::Stacks(ProfileFormat::Dhat),
            Self::Speedscope => FormatSource::Stacks(ProfileFormat::Speedscope),
            Self::Heaptrack => FormatSource::Stacks(ProfileFormat::Heaptrack),
            Self::FirefoxProfiler => FormatSource::Stacks(ProfileFormat::FirefoxProfiler),
            Self::Folded => FormatSource::Stacks(ProfileFormat::Folded),
        }
    }

    /// Returns the format that a file's name selects; `None` for an unknown name.
    pub(crate) fn guess(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let ends = [
            (Self::Pprof, &[".pb", ".pprof"][..]),
            (Self::Dhat, &[".dhat.json", ".dhat"]),
            (Self::Speedscope, &[".speedscope.json", ".speedscope"]),
            (Self::Heaptrack, &[".heaptrack"]),
            (Self::FirefoxProfiler, &[".profile.json", ".firefox.json"]),
            (Self::Folded, &[".folded", ".collapsed"]),
            (Self::ChromeTrace, &[".trace.json"]),
            (Self::Openmetrics, &[".openmetrics", ".om"]),
            (Self::Prometheus, &[".prom"]),
            (Self::Parquet, &[".parquet"]),
            (Self::V8, &[".heapsnapshot"]),
        ];
        let by_end = ends.into_iter().find(|(_, ends)| ends.iter().any(|end| name.ends_with(end)));
        by_end.map(|(format, _)| format).or_else(|| match name {
            // heaptrack and DHAT name their own files like this.
            name if name.starts_with("heaptrack.") => Some(Self::Heaptrack),
            name if name.starts_with("dhat") && name.ends_with(".json") => Some(Self::Dhat),
            _ => None,
        })
    }

    /// The names of all formats.
    pub(crate) fn names() -> String {
        let names = Self::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        names.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
    }
}
