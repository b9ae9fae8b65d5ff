//! `about-memory show`.

use std::io::{self, Write as _};

use about_memory::Filter;
use clap::Args;
use memory_report::ReportSet;

use super::Failure;
use super::input::{self, Input, Reading, say_warnings};
use super::live_input::LiveOptions;
use super::view::View;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory show memory-report.json.gz
  about-memory show memory-report.json.gz --verbose --filter explicit/cache
  about-memory show memory-report.json.gz --process 'Main Process' --depth 2 --units auto
  about-memory show memory-report.json.gz --threshold 0.1 --sort name
  zcat memory-report.json.gz | about-memory show -
  about-memory show 1234
  about-memory show 1234 --tree --minimize
  about-memory show --all --anonymize
  about-memory show 1234 --resident

A running process must listen: start it with ABOUT_MEMORY=listen, or call memory_reporter::listen()
in it. The top of the text names processes that do not answer.";

/// The paths that `--resident` shows.
const RESIDENT: &str =
    "^(explicit|resident-map|proportional-map|swap-map|huge-pages|hugetlb)/|^(resident|page-tables)$";

#[derive(Args)]
pub(crate) struct Show {
    /// The report file, compressed or not, `-` for standard input; or the process ids or names of running processes.
    #[arg(value_name = "FILE|PID", required_unless_present = "all", conflicts_with = "all")]
    inputs: Vec<Input>,
    #[command(flatten)]
    view: View,
    #[command(flatten)]
    live: LiveOptions,
    #[command(flatten)]
    reading: Reading,
}

impl Show {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut filter = self.view.filter()?;
        let (name, set) = self.read()?;
        if self.live.resident() {
            if !set.iter().any(|report| report.path.starts_with("resident-map/")) {
                let how = anyhow::anyhow!("has no resident-map; save the report with --resident");
                return Err(Failure::File(name, how));
            }
            if filter.is_none() {
                filter = Some(Filter::regex(RESIDENT).map_err(|error| Failure::Usage(error.to_string()))?);
            }
        }
        // Each collection of memory-reporter has this row. A file of Firefox's has Firefox's text.
        let is_ours = set.iter().any(|report| report.path == "explicit/memory-reporter/registry");
        let text = about_memory::text(&set).descriptions(is_ours && self.view.is_verbose());
        let text = self.view.apply(text, filter);
        say_warnings(&name, text.warnings().count());
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::Output)
    }

    /// The name of the input for messages, and its reports.
    fn read(&self) -> Result<(String, ReportSet), Failure> {
        if let [input] = &*self.inputs
            && input.process()?.is_none()
        {
            if let Some(option) = self.live.used() {
                let file = input.name();
                return Err(Failure::Usage(format!(
                    "{option} is for running processes, and {file} is a file"
                )));
            }
            return Ok((input.name(), input.read(&self.reading)?));
        }
        let pids = input::pids(&self.inputs)?;
        let set = self.live.collect(&pids, &self.live.ask().read(self.reading.options()))?;
        let name = if let [pid] = *pids { format!("process {pid}") } else { "processes".to_owned() };
        Ok((name, set))
    }
}
