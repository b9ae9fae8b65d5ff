//! The options of metrics, and `about-memory metrics`, the old spelling of `about-memory export --format openmetrics`.

use clap::Args;
use memory_export::open_metrics::OpenMetricsOptions;

use super::Failure;
use super::export::ExportCommand;
use super::export::format::ExportFormat;
use super::view::percent;

#[derive(Args)]
#[command(next_help_heading = "Options of the formats openmetrics and prometheus")]
pub(super) struct SeriesLimits {
    /// Write at most this many series of reports. [default: 500]
    #[arg(long, value_name = "SERIES")]
    max_series: Option<usize>,
    /// Show at most this many levels. A path with at most this many names has a series of its own. [default: 3]
    #[arg(long, value_name = "LEVELS")]
    depth: Option<usize>,
    /// Leave out entries below this percentage of their tree. Only longer paths than --depth are left out. [default: 1]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    threshold: Option<f64>,
}

impl SeriesLimits {
    pub(super) fn is_chosen(&self) -> bool {
        self.max_series.is_some() || self.depth.is_some() || self.threshold.is_some()
    }

    pub(super) fn options(&self) -> OpenMetricsOptions {
        let options = OpenMetricsOptions::new();
        let options = self.max_series.into_iter().fold(options, OpenMetricsOptions::max_series);
        let options = self.depth.into_iter().fold(options, OpenMetricsOptions::depth);
        self.threshold.into_iter().fold(options, OpenMetricsOptions::threshold)
    }
}

#[derive(Args)]
pub(crate) struct MetricsCommand {
    #[command(flatten)]
    export: ExportCommand,
    /// Keep private data in the names of running processes.
    #[arg(long, hide = true)]
    private: bool,
}

impl MetricsCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { mut export, private } = self;
        export.format.get_or_insert(ExportFormat::OpenMetrics);
        let is_file = matches!(&*export.sources, [source] if source.process()?.is_none());
        if !private && !is_file {
            export.live.leave_out_private_data();
        }
        export.run()
    }
}
