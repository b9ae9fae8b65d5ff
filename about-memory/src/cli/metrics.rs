//! `about-memory metrics`: reports as metrics, for collectors.

use std::io::{self, Write as _};

use clap::{Args, ValueEnum};
use memory_export::ExportError;
use memory_export::open_metrics::{self, MetricsForm, OpenMetricsOptions};

use super::Failure;
use super::input::{self, InputArgument, ReadLimits};
use super::live_input::RequestOptions;
use super::view::percent;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory metrics 1234
  about-memory metrics --all --format prometheus > /var/lib/node_exporter/memory.prom
  about-memory metrics memory-report.json.gz --max-series 100

Each series has the labels process, path and kind. The largest paths have a series of their own. A path that ends in
(other) is the sum of the rest below it, so each report is in one series. Trees other than explicit, and lines such as
resident, describe the same memory in another way: sum over path=~\"explicit/.*\", not over all paths. Running processes
leave private data out of names. Labels have no addresses and no URLs.";

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum FormName {
    /// `OpenMetrics` 1.0
    #[default]
    Openmetrics,
    /// The text of Prometheus
    Prometheus,
}

#[derive(Args)]
pub(crate) struct MetricsCommand {
    /// A report file, compressed or not, `-` for standard input; or the process ids or names of running processes.
    #[arg(value_name = "FILE|PID", required_unless_present = "all", conflicts_with = "all")]
    inputs: Vec<InputArgument>,
    /// The format to write.
    #[arg(long, value_enum, default_value_t)]
    format: FormName,
    /// Write at most this many series of reports.
    #[arg(long, value_name = "SERIES", default_value_t = OpenMetricsOptions::default().max_series)]
    max_series: usize,
    /// Show at most this many levels. A path with at most this many names has a series of its own.
    #[arg(long, value_name = "LEVELS", default_value_t = OpenMetricsOptions::default().depth)]
    depth: usize,
    /// Leave out entries below this percentage of their tree. Only longer paths than --depth are left out.
    #[arg(long, value_name = "PERCENT", default_value_t = OpenMetricsOptions::default().threshold, value_parser = percent)]
    threshold: f64,
    /// Keep private data in the names of running processes.
    #[arg(long)]
    private: bool,
    #[command(flatten)]
    live: RequestOptions,
    #[command(flatten)]
    reading: ReadLimits,
}

impl MetricsCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let file = match &*self.inputs {
            [input] if input.process()?.is_none() => Some(input),
            _ => None,
        };
        let set = match file {
            Some(input) => {
                if let Some(option) = self.live.used() {
                    let file = input.name();
                    return Err(Failure::Usage(format!(
                        "{option} is for running processes, and {file} is a file"
                    )));
                }
                input.read(&self.reading)?
            }
            None => {
                let ask = self.live.ask().read(self.reading.options());
                let ask = if self.private { ask } else { ask.anonymize(true) };
                self.live.collect(&input::pids(&self.inputs)?, &ask)?
            }
        };
        let options = OpenMetricsOptions::new()
            .form(match self.format {
                FormName::Openmetrics => MetricsForm::OpenMetrics,
                FormName::Prometheus => MetricsForm::Prometheus,
            })
            .max_series(self.max_series)
            .depth(self.depth)
            .threshold(self.threshold);
        let names: Vec<String> = self.inputs.iter().map(InputArgument::name).collect();
        let names = if names.is_empty() { "all processes".to_owned() } else { names.join(", ") };
        let mut out = io::stdout().lock();
        let written = open_metrics::write(&set, &options, &mut out).and_then(|()| Ok(out.flush()?));
        written.map_err(|error| match error {
            ExportError::Write(error) => Failure::Output(error),
            error => Failure::File(names, error.into()),
        })
    }
}
