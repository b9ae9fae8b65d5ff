//! `about-memory export`: a dump, a report or a heap snapshot in the format of another tool.

pub(super) mod format;
pub(super) mod profile;
mod series;
mod series_limits;
mod tables;

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use dmd_analyze::recording::Recording;
use flate2::Compression;
use flate2::write::GzEncoder;
use memory_export::dmd::{ProfileError, ProfileOptions};
use memory_export::open_metrics::MetricsForm;
use memory_export::{ExportError, ProfileFormat, chrome_trace, open_metrics, pprof, snapshot};
use memory_report::ReportSet;
use memory_report::file::ReadOptions as ReportOptions;

use super::dump_limits::DumpLimits;
use super::file_kind::FileKind;
use super::html::has_blocks;
use super::input::{self, InputArgument};
use super::live_input::RequestOptions;
use super::recorded::BlockTime;
use super::symbols::SymbolSearch;
use super::{Failure, new_file, say};
use format::ExportFormat;
use profile::{ConvertedStacks, StackConversion};
use series_limits::SeriesLimits;
use tables::TableArguments;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory export dmd-1234.json.gz -o heap.pb.gz            # go tool pprof -http=: heap.pb.gz
  about-memory export dmd-1234.json.gz -o heap.speedscope.json  # open it at speedscope.app
  about-memory export dmd-1234.json.gz -o heaptrack.app.gz      # heaptrack_gui heaptrack.app.gz
  about-memory export dmd-1234.json.gz -o dhat.json             # load it in dh_view.html of Valgrind
  about-memory export dmd-1234.json.gz -o heap.profile.json.gz  # load it in profiler.firefox.com
  about-memory export 1234 -o live.pb.gz --symbols-in build-id
  about-memory export app.dmdrec -o leaks.pb.gz --between 10s end
  about-memory export app.dmdrec -o heaptrack.app.gz            # each allocation and each free, with its time
  about-memory export before.json.gz after.json.gz -o growth.speedscope.json
  about-memory export dmd-1234.json.gz --format folded | inferno-flamegraph > graph.svg
  about-memory export monday.json.gz tuesday.json.gz -o week.trace.json
  about-memory export memory-report.json.gz -o memory.prom
  about-memory export --all --anonymize --format prometheus > /var/lib/node_exporter/memory.prom
  about-memory export heap.fxsnapshot -o heap.heapsnapshot
  about-memory export heap.fxsnapshot -o nodes.pb.gz            # nodes by the stacks that allocated them
  about-memory export memory-report.json.gz -o reports.parquet  # duckdb, polars, pyarrow
  about-memory export 1234 --format parquet --append-to fleet --service search --service-version 1.2

The name of the output selects the format:
  .pb.gz .pprof       pprof             dumps and recordings of DMD, pprof profiles, heap snapshots by stack
  .speedscope.json    speedscope        the same
  .dhat.json          dhat              the same; also dhat*.json
  .heaptrack[.gz]     heaptrack         the same; also heaptrack.*
  .profile.json[.gz]  firefox-profiler  the same
  .folded             folded            the same
  .trace.json[.gz]    chrome-trace      report files; each is one point in time
  .om .prom           openmetrics, prometheus  one report file, or running processes
  .parquet            parquet           any source of this list, as tables for SQL
  .heapsnapshot       v8                a heap snapshot (.fxsnapshot)

In pprof, the owner of memory is a label: go tool pprof -tagroot=reporter heap.pb.gz shows the reporters as the roots of
all stacks, and -tagfocus=kind=unreported shows only memory that no reporter reports. In other formats, the kind and the
reporter are frames. If a format cannot hold an amount (a negative amount, or an amount above 2^53), the command fails and
names the amount.

In openmetrics and prometheus, each series has the labels process, path and kind. The largest paths have a series of
their own. A path that ends in (other) has the sum of the reports that have no series of their own, so each report is in
one series. Trees other than explicit, and lines such as resident, describe the same memory in another way: sum over
path=~\"explicit/.*\", not over all paths. Labels contain neither addresses nor URLs.

Exit status: 0 on success, 1 if a file cannot be read or does not fit the format, 2 for wrong usage.";

/// The way in which a pprof profile names code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SymbolsIn {
    /// Functions, files and lines are in the profile
    #[default]
    Inline,
    /// The profile has addresses and build ids; its reader looks up the functions
    BuildId,
}

#[derive(Args)]
pub(crate) struct ExportCommand {
    /// A dump of DMD, a recording, a pprof profile, report files (the earliest first), a heap snapshot, or a process;
    /// `-` for standard input. Two dumps or recordings give the second minus the first.
    #[arg(value_name = "SOURCE", required_unless_present = "all", conflicts_with = "all")]
    pub(super) sources: Vec<InputArgument>,
    /// The format to write. [default: by the name of the output]
    #[arg(long, short_alias = 'f', value_enum)]
    pub(super) format: Option<ExportFormat>,
    /// The file to write. It is compressed if its name ends in .gz. [default: standard output, `-`]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    when: BlockTime,
    /// Keep the frames of allocators and libraries, and the frames that start threads and `main`.
    #[arg(long)]
    all_frames: bool,
    /// Count the bytes that the program requested, not the bytes that it can use.
    #[arg(long)]
    requested: bool,
    /// For pprof: how the profile names code.
    #[arg(long, value_enum, default_value_t)]
    symbols_in: SymbolsIn,
    /// For pprof: write one sample for each block size of a stack, with the label `bytes`.
    #[arg(long)]
    sizes: bool,
    #[command(flatten)]
    symbols: SymbolSearch,
    #[command(flatten)]
    limits: DumpLimits,
    #[command(flatten)]
    pub(super) live: RequestOptions,
    #[command(flatten)]
    series: SeriesLimits,
    #[command(flatten)]
    tables: TableArguments,
}

/// The error of [`ExportCommand::report`] for a dump or a recording of DMD. Contains the kind of the file.
#[derive(Debug, thiserror::Error)]
#[error(
    "is a {0} of DMD and has no reports; the formats of {0}s are pprof, dhat, speedscope, heaptrack, firefox-profiler, \
     folded and parquet"
)]
struct NoReports(&'static str);

impl ExportCommand {
    /// Returns the kinds of files that the format can be made from, and the kinds for which the command has its own
    /// error.
    pub(super) fn kinds(&self) -> &'static [FileKind] {
        match self.format() {
            Ok(ExportFormat::Stacks(_)) => &[
                FileKind::Dump,
                FileKind::Recording,
                FileKind::Pprof,
                FileKind::HeapProfile,
                FileKind::Snapshot,
                FileKind::Report,
            ],
            Ok(ExportFormat::V8) => &[FileKind::Snapshot],
            Ok(ExportFormat::Parquet) | Err(_) => FileKind::ALL,
            Ok(_) => &[FileKind::Report, FileKind::Dump, FileKind::Recording],
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        let format = self.format()?;
        let is_file = |source: &InputArgument| source.is_stdin() || source.path().exists();
        let most = match format {
            ExportFormat::ChromeTrace | ExportFormat::Parquet => usize::MAX,
            ExportFormat::Stacks(_) => 2,
            _ if format.is_metrics() && !self.sources.iter().any(is_file) => usize::MAX,
            _ => 1,
        };
        if self.sources.len() > most {
            return Err(Failure::Usage(format!(
                "{} sources were given, and the format takes at most {most}",
                self.sources.len()
            )));
        }
        if self.sources.iter().filter(|source| source.is_stdin()).count() > 1 {
            return Err(Failure::Usage("standard input can be given only once".to_owned()));
        }
        self.check_options(format)?;
        match format {
            ExportFormat::Stacks(format) => self.stacks(format),
            ExportFormat::ChromeTrace => {
                let counters = series::counters(&self.sources, |source| self.report(source))?;
                self.write(|out| Ok(chrome_trace::write(&counters, out)?))
            }
            ExportFormat::OpenMetrics => self.metrics(MetricsForm::OpenMetrics),
            ExportFormat::Prometheus => self.metrics(MetricsForm::Prometheus),
            ExportFormat::V8 => {
                let graph = self.graph(&self.sources[0])?;
                self.write(|out| Ok(heap_graph::export::write_v8(&graph, out)?))
            }
            ExportFormat::Parquet => self.tables(),
        }
    }

    /// Writes the reports of a file or of processes as metrics.
    fn metrics(&self, form: MetricsForm) -> Result<(), Failure> {
        let set = match &*self.sources {
            [source] => self.report(source)?,
            sources => {
                self.live.collect(&input::pids(sources)?, &self.live.ask().read(self.read_options()))?
            }
        };
        self.write(|out| Ok(open_metrics::write(&set, &self.series.options().form(form), out)?))
    }

    fn graph(&self, source: &InputArgument) -> Result<heap_graph::Graph, Failure> {
        let options =
            heap_graph::snapshot::SnapshotReadOptions::new().max_bytes(self.limits.options().byte_limit());
        let graph = match source.is_stdin() {
            true => heap_graph::snapshot::read_from(io::stdin().lock(), &options),
            false => heap_graph::snapshot::read_with(source.path(), &options),
        };
        graph.map_err(|error| Failure::File(source.name(), error.into()))
    }

    /// Reads the nodes of a heap snapshot, by allocation stack.
    fn nodes(&self, source: &InputArgument) -> Result<ConvertedStacks, Failure> {
        if self.when.is_chosen() || self.requested {
            let name = source.name();
            let reason = "a heap snapshot has one time and one size per node; --at, --between and --requested are for dumps";
            return Err(Failure::Usage(format!("{name}: {reason}")));
        }
        let stacks = snapshot::stacks(&self.graph(source)?);
        let stacks = stacks.map_err(|error| Failure::File(source.name(), error.into()))?;
        Ok(ConvertedStacks::Stacks(Box::new(stacks)))
    }

    /// Refuses options that would have no effect.
    fn check_options(&self, format: ExportFormat) -> Result<(), Failure> {
        let refuse = |options: &str, what: &str| Err(Failure::Usage(format!("{options} are for {what}")));
        let is_of_stacks = matches!(format, ExportFormat::Stacks(_));
        let is_parquet = format == ExportFormat::Parquet;
        if !is_parquet && self.tables.is_chosen() {
            return refuse(
                "--append-to, --table, --service, --service-version, --host, --time and --run-label",
                "the format parquet",
            );
        }
        if is_parquet && self.requested {
            let reason = "--requested is for other formats; a table has both requested and usable bytes";
            return Err(Failure::Usage(reason.to_owned()));
        }
        if !is_of_stacks && !is_parquet {
            if self.when.is_chosen() {
                return refuse("--at and --between", "formats with stacks");
            }
            if self.all_frames || self.requested {
                return refuse("--all-frames and --requested", "formats with stacks");
            }
        }
        if format != ExportFormat::Stacks(ProfileFormat::Pprof)
            && (self.sizes || self.symbols_in != SymbolsIn::Inline)
        {
            return refuse("--sizes and --symbols-in", "the format pprof");
        }
        if !format.is_metrics() && (self.series.is_chosen() || self.live.takes_more_processes()) {
            return refuse(
                "--all, --tree, --max-series, --depth and --threshold",
                "the formats openmetrics and prometheus",
            );
        }
        if !format.is_of_reports() && self.live.is_chosen() {
            return refuse("--anonymize, --minimize, --resident and --timeout", "formats of reports");
        }
        Ok(())
    }

    fn format(&self) -> Result<ExportFormat, Failure> {
        let name = match (self.format, &self.output) {
            (Some(format), _) => return Ok(format),
            (None, None) if self.tables.append_to.is_some() => return Ok(ExportFormat::Parquet),
            (None, None) => "--format or --output is required".to_owned(),
            (None, Some(path)) => match ExportFormat::guess(path) {
                Some(format) => return Ok(format),
                None => format!("{}: no format has this ending; use --format", path.display()),
            },
        };
        Err(Failure::Usage(format!("{name} (formats: {})", ExportFormat::names())))
    }

    fn is_pprof(&self) -> bool {
        matches!(self.format(), Ok(ExportFormat::Stacks(ProfileFormat::Pprof)))
    }

    /// Returns the name of the sources for messages.
    fn source_name(&self) -> String {
        self.sources.first().map_or_else(|| "all processes".to_owned(), InputArgument::name)
    }

    fn stacks(&self, format: ProfileFormat) -> Result<(), Failure> {
        let is_pprof = format == ProfileFormat::Pprof;
        let by_build_id = is_pprof && self.symbols_in == SymbolsIn::BuildId;
        let making = StackConversion {
            symbols: (!by_build_id).then_some(&self.symbols),
            system_names: is_pprof,
            limits: &self.limits,
            when: &self.when,
            options: ProfileOptions::new()
                // Without function names, the program's own frames cannot be found.
                .all_frames(self.all_frames || by_build_id)
                .types(is_pprof && !by_build_id)
                .requested(self.requested),
        };
        let mut made = match &*self.sources {
            [first, second] => ConvertedStacks::Stacks(Box::new(making.difference(first, second)?)),
            [source] if has_end(source.path(), "fxsnapshot") => self.nodes(source)?,
            sources => making.made(&sources[0], format)?,
        };
        let symbols = if by_build_id { pprof::PprofSymbols::BuildId } else { pprof::PprofSymbols::Inline };
        let options = pprof::PprofOptions::new().symbols(symbols).sizes(self.sizes);
        let mut merged = 0;
        self.write(|out| {
            merged = made.write(format, &options, out)?;
            Ok(())
        })?;
        if merged > 0 {
            say(&format!(
                "heaptrack counts {merged} blocks too few, because the file has one allocation for several blocks"
            ));
        }
        Ok(())
    }

    fn read_options(&self) -> ReportOptions {
        ReportOptions::new().max_bytes(self.limits.options().byte_limit())
    }

    fn report(&self, source: &InputArgument) -> Result<ReportSet, Failure> {
        if let Some(pid) = source.process()? {
            return self.live.collect(&[pid], &self.live.ask().read(self.read_options()));
        }
        self.live.refuse_for_file(&source.name())?;
        if !source.is_stdin() && Recording::is_at(source.path()) {
            return Err(Failure::File(source.name(), NoReports("recording").into()));
        }
        match source.read_with(self.read_options()) {
            Err(Failure::File(name, error)) if has_blocks(&name, &error) => {
                Err(Failure::File(name, NoReports("dump").into()))
            }
            read => read,
        }
    }

    fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<(), ProfileError>) -> Result<(), Failure> {
        let path = self.output.as_deref().filter(|path| path.as_os_str() != "-");
        let Some(path) = path else {
            if io::stdout().is_terminal() && self.is_pprof() {
                return Err(Failure::Usage("pprof is binary: use --output FILE".to_owned()));
            }
            let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
            let written = write(&mut out).and_then(|()| Ok(out.flush()?));
            return written.map_err(|error| match error {
                ProfileError::Export(ExportError::Write(error)) => Failure::Output(error),
                error => Failure::File(self.source_name(), error.into()),
            });
        };
        // The export of a running process or of a private file is private.
        let mut private = self.sources.is_empty();
        for source in &self.sources {
            private |= source.is_private()?;
        }
        let compress = has_end(path, "gz") && !self.is_pprof();
        let written = new_file::write(path, private, |out| {
            if !compress {
                return write(out);
            }
            let mut encoder = GzEncoder::new(out, Compression::new(2));
            write(&mut encoder)?;
            encoder.finish()?;
            Ok(())
        });
        written.map_err(|error| match error {
            ProfileError::Export(ExportError::Write(error)) => {
                Failure::File(path.display().to_string(), anyhow::anyhow!("cannot be written: {error}"))
            }
            error => Failure::File(self.source_name(), error.into()),
        })
    }
}

fn has_end(path: &Path, end: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(end))
}
