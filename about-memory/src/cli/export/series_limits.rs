//! The limits of metrics.

use clap::Args;
use memory_export::open_metrics::OpenMetricsOptions;

use super::super::view::percent;

#[derive(Args)]
#[command(next_help_heading = "Options of the formats openmetrics and prometheus")]
pub(super) struct SeriesLimits {
    /// Write at most this many series of reports. [default: 500]
    #[arg(long, value_name = "SERIES")]
    max_series: Option<usize>,
    /// Show at most this many levels. A path with at most this many names has a series of its own, and so has a longer
    /// path that reaches --threshold. [default: 3]
    #[arg(long, value_name = "LEVELS")]
    depth: Option<usize>,
    /// Leave out entries below this percentage of their tree. Paths with at most --depth names stay. [default: 1]
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
