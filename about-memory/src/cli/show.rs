//! `about-memory show`: the first screen of a file or of running processes.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use about_memory::PathFilter;
use clap::Args;
use memory_report::ReportSet;

use super::file_kind::FileKind;
use super::input::{self, InputArgument, ReadLimits, say_warnings};
use super::live_input::{RequestOptions, seconds};
use super::view::TreeView;
use super::{Failure, first_screen, watch};

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory show memory-report.json.gz
  about-memory show memory-report.json.gz --verbose --filter explicit/cache
  about-memory show memory-report.json.gz --process 'Main Process' --depth 2 --units auto
  about-memory show memory-report.json.gz --threshold 0.1 --sort name
  zcat memory-report.json.gz | about-memory show -
  about-memory show dmd-1234.json.gz
  about-memory show core.1234
  about-memory show 1234
  about-memory show 1234 --tree --minimize
  about-memory show 1234 --interval 2s
  about-memory show --all --anonymize
  about-memory show 1234 --resident

The kind of a file is detected from its contents: a report, a dump or a recording of DMD, a heap snapshot, a core file of
a program under DMD, or a pprof profile. All options except --max-bytes are for reports and processes.

A running process must listen: start it with ABOUT_MEMORY=listen or `about-memory run --listen`, or call
memory_reporter::listen() in it. The top of the text names processes that do not answer.

With --interval, the marks are: + larger, - smaller, * new, x gone.";

/// The paths that `--resident` selects.
const RESIDENT: &str =
    "^(explicit|resident-map|proportional-map|swap-map|huge-pages|hugetlb)/|^(resident|page-tables)$";

/// The interval if `--interval` is not given: for `--count`, and for `about-memory watch`, an old spelling.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Args)]
pub(crate) struct ShowCommand {
    /// A file, compressed or not; `-` for a report from standard input; or the process ids or names of running
    /// processes.
    #[arg(value_name = "FILE|PID", required_unless_present = "all", conflicts_with = "all")]
    inputs: Vec<InputArgument>,
    /// Update after this time. Each update shows the processes again, and marks the changes. Seconds, or a number with
    /// ms, s, m or h.
    #[arg(long, short, value_name = "TIME", value_parser = seconds)]
    interval: Option<Duration>,
    /// End after this many updates.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    view: TreeView,
    #[command(flatten)]
    live: RequestOptions,
    #[command(flatten)]
    limits: ReadLimits,
}

impl ShowCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        if let Some(interval) = self.interval.or(self.count.map(|_| WATCH_INTERVAL)) {
            return watch::watch(&input::pids(&self.inputs)?, &self.view, &self.live, interval, self.count);
        }
        if let Some((input, kind)) = self.other_file()? {
            let resident = self.live.resident().then_some("--resident");
            if let Some(option) = self.view.used().next().or_else(|| self.live.used()).or(resident) {
                let (name, kind) = (input.name(), kind.name());
                let reason = format!("{option} is for reports and processes, and {name} is {kind}");
                return Err(Failure::Usage(reason));
            }
            return first_screen::show(kind, input, &self.limits);
        }
        self.show_reports()
    }

    /// `about-memory watch`.
    pub(super) fn watch(mut self) -> Result<(), Failure> {
        self.interval.get_or_insert(WATCH_INTERVAL);
        self.run()
    }

    /// Returns the input that is not a report, and its kind. `None` if the inputs are reports or processes.
    fn other_file(&self) -> Result<Option<(&InputArgument, FileKind)>, Failure> {
        let [input] = &*self.inputs else { return Ok(None) };
        if input.is_stdin() || input.process()?.is_some() {
            return Ok(None);
        }
        let kind = FileKind::detect(input.path()).filter(|kind| FileKind::SHOWN.contains(kind));
        Ok(kind.filter(|kind| *kind != FileKind::Report).map(|kind| (input, kind)))
    }

    fn show_reports(self) -> Result<(), Failure> {
        let mut filter = self.view.filter()?;
        let (name, set) = self.read()?;
        if self.live.resident() {
            if !set.iter().any(|report| report.path.starts_with("resident-map/")) {
                let how = anyhow::anyhow!(
                    "has no resident-map; save it with: about-memory save PID FILE --resident"
                );
                return Err(Failure::File(name, how));
            }
            if filter.is_none() {
                filter =
                    Some(PathFilter::regex(RESIDENT).map_err(|error| Failure::Usage(error.to_string()))?);
            }
        }
        // Each report of memory-reporter has this row. A report of Firefox lacks the row, and is shown without
        // descriptions, as in Firefox's text.
        let is_ours = set.iter().any(|report| report.path == "explicit/memory-reporter/registry");
        let text = about_memory::text(&set).descriptions(is_ours && self.view.is_verbose());
        let text = self.view.apply(text, filter);
        say_warnings(&name, text.warnings().count());
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::Output)?;
        self.print_next_commands();
        Ok(())
    }

    /// Prints the next commands for a report on standard error, if a person reads the text.
    fn print_next_commands(&self) {
        if let [input] = &*self.inputs
            && !input.is_stdin()
            && io::stdout().is_terminal()
            && io::stderr().is_terminal()
        {
            let next = first_screen::after_report(&input.name());
            // If stderr is closed, there is no place to report it.
            let _ = write!(io::stderr(), "\n{next}");
        }
    }

    /// Returns the name of the input for messages, and its reports.
    fn read(&self) -> Result<(String, ReportSet), Failure> {
        if let [input] = &*self.inputs
            && input.process()?.is_none()
        {
            self.live.refuse_for_file(&input.name())?;
            return Ok((input.name(), input.read(&self.limits)?));
        }
        let pids = input::pids(&self.inputs)?;
        let set = self.live.collect(&pids, &self.live.ask().read(self.limits.options()))?;
        let name = if let [pid] = *pids { format!("process {pid}") } else { "processes".to_owned() };
        Ok((name, set))
    }
}
