//! `about-memory html`: one page for a browser with a report, a DMD dump, a recording, or the changes between two
//! files.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use about_memory::{DiffOptions, HeapFacts, HtmlOptions, NormalizeRule, changes};
use clap::Args;
use dmd_analyze::program::{
    HeapBlocks, HeapChange, ProgramOptions, ResidentMemory, Timeline, TimelineOptions,
};
use dmd_analyze::recording::{Moment, Recording};
use dmd_analyze::{Analysis, AnalyzeOptions, Dump, DumpReadOptions, FlameGraph};
use memory_report::{ReadError, ReportSet, file};

use super::dump_limits;
use super::file_kind::FileKind;
use super::input::{InputArgument, ReadLimits};
use super::recorded::{self, BlockTime};
use super::replay::ReplayableInput;
use super::symbols::SymbolSearch;
use super::{Failure, new_file};

/// A flame graph has at most this many frames. A browser draws this many frames without delay.
const FRAMES: usize = 20_000;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory html memory-report.json.gz -o page.html
  about-memory html before.json.gz after.json.gz -o changes.html
  zcat memory-report.json.gz | about-memory html - -o - > page.html
  about-memory html dmd.json.gz -o stacks.html
  about-memory html dmd.json.gz --resident -o memory.html
  about-memory html my-program.dmdrec -o history.html
  about-memory html my-program.dmdrec --at 12.5s -o stacks.html
  about-memory html before.dmdrec after.dmdrec -o changes.html
  about-memory html memory-report.json.gz --dmd dmd.json.gz -o page.html

The page of a DMD dump shows a flame graph: all stacks as one tree, without frames of allocators and libraries. It
keeps the largest 20,000 frames. A frame `(small)` has the sum of the smaller frames with the same caller. With
--resident, the page shows the memory of the process by owner, and the stacks also as table and treemap.

The page of a recording shows the heap over time. The reader selects a part of the time, and sees its blocks as a table,
a treemap and a flame graph. The page keeps the 3,000 stacks with the most memory; rows named `(small)` have the sums of
the other stacks. The page of two dumps or recordings shows what changed from the end of the first to the end of the
second. --at and --between choose another time.

The page is one file that loads nothing else. It shows all names in a report as plain text.";

#[derive(Args)]
pub(crate) struct HtmlCommand {
    /// A report file, a dump or a recording of DMD. `-` is a report or a dump from standard input.
    file: InputArgument,
    /// A later report, dump or recording: the page shows what changed.
    second: Option<InputArgument>,
    /// The file to write. `-` is standard output.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// The title of the page. [default: the names of the files]
    #[arg(long)]
    title: Option<String>,
    /// Replace matches of this regular expression in all names before the comparison. Repeatable.
    #[arg(long, value_name = "REGEX=>REPLACEMENT", value_parser = NormalizeRule::parse, requires = "second")]
    normalize: Vec<NormalizeRule>,
    /// A dump of DMD to show as a flame graph below the report.
    #[arg(long, value_name = "DUMP", conflicts_with = "second")]
    dmd: Option<PathBuf>,
    /// Show resident memory. For a dump: the memory of the process by owner, and a table of its blocks with the bytes
    /// that are in memory, swapped out, and untouched.
    #[arg(long, conflicts_with_all = ["second", "dmd", "at", "between"])]
    resident: bool,
    #[command(flatten)]
    when: BlockTime,
    #[command(flatten)]
    symbols: SymbolSearch,
    #[command(flatten)]
    reading: ReadLimits,
}

impl HtmlCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut options = HtmlOptions::new();
        if self.file.is_stdin() && self.dmd.as_deref().is_some_and(dump_limits::is_stdin) {
            return Err(Failure::Usage("standard input can be given only once".to_owned()));
        }
        let set = match &self.second {
            Some(second) => self.read_two(second, &mut options),
            None if self.dmd.is_none() => self.read_one(&mut options),
            None => self.file.read(&self.reading),
        }?;
        if let Some(dump) = &self.dmd {
            options = options.flame_graph(self.flame_graph_of(dump)?);
        }
        // Only this user may read the page of a live process or of a private file. The umask decides for other pages.
        let dump = self.dmd.as_ref().map(|path| InputArgument::from(path.clone().into_os_string()));
        let mut private = false;
        for input in [Some(&self.file), self.second.as_ref(), dump.as_ref()].into_iter().flatten() {
            private |= input.is_private()?;
        }
        let title = match (&self.title, &self.second) {
            (Some(title), _) => title.clone(),
            (None, Some(second)) => format!("diff of {} and {}", self.file.name(), second.name()),
            (None, None) => self.file.name(),
        };
        let page = about_memory::html(&set, &options.title(title));
        if self.output.as_os_str() == "-" {
            let mut out = io::stdout().lock();
            return out.write_all(page.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output);
        }
        new_file::write(&self.output, private, |out| out.write_all(page.as_bytes()))
            .map_err(|error| Failure::File(self.output.display().to_string(), error.into()))
    }

    /// Reads one file. Returns its report. For a dump or a recording, adds the contents to `options` and returns an
    /// empty report.
    fn read_one(&self, options: &mut HtmlOptions) -> Result<ReportSet, Failure> {
        let path = self.file.path();
        if self.resident {
            return self.read_resident(options);
        }
        if self.file.is_stdin() {
            return self.read_stdin(options);
        }
        if Recording::is_at(path) && !self.when.is_chosen() {
            let timeline = self.timeline()?;
            let facts = HeapFacts::from_timeline(&timeline);
            *options = core::mem::take(options).timeline(timeline).heap_facts(facts);
            return Ok(ReportSet::new());
        }
        if !Recording::is_at(path) {
            match self.file.read(&self.reading) {
                Err(Failure::File(name, error)) if has_blocks(&name, &error) => {}
                set => return set,
            }
        }
        *options = core::mem::take(options).flame_graph(self.flame_graph_of(path)?);
        Ok(ReportSet::new())
    }

    /// Reads a dump with its resident memory. Adds both to `options`, and returns an empty report.
    fn read_resident(&self, options: &mut HtmlOptions) -> Result<ReportSet, Failure> {
        let path = self.file.path();
        if self.file.is_stdin() || Recording::is_at(path) || self.file.read(&self.reading).is_ok() {
            return Err(Failure::Usage("--resident needs the file of a dump".to_owned()));
        }
        let limits = self.reading.dump_options();
        let fix = |dump: &mut Dump| self.symbols.fix(dump, &limits);
        let (dump, overview) = self.when.read(path, &limits, Some(Moment::End), fix)?;
        let failure = |error: dmd_analyze::AnalyzeError| Failure::File(self.file.name(), error.into());
        dump.check_resident().map_err(failure)?;
        let view = ProgramOptions::new();
        let memory = ResidentMemory::new(&dump, &view).map_err(failure)?;
        let facts = HeapFacts::from_dump(&dump, &overview);
        let blocks = HeapBlocks::new(dump, &view);
        *options = core::mem::take(options).heap_blocks_and_memory(blocks, &memory).heap_facts(facts);
        Ok(ReportSet::new())
    }

    /// Reads two files. Returns the difference of their reports. For two heaps, adds the changes to `options` and returns
    /// an empty report.
    fn read_two(&self, second: &InputArgument, options: &mut HtmlOptions) -> Result<ReportSet, Failure> {
        if !(Recording::is_at(self.file.path()) || Recording::is_at(second.path())) {
            match InputArgument::read_two(&self.file, second, &self.reading) {
                Err(Failure::File(name, error)) if has_blocks(&name, &error) => {}
                read if self.when.is_chosen() => {
                    read?;
                    let reason = "--at and --between are for dumps and recordings, not for reports";
                    return Err(Failure::Usage(reason.to_owned()));
                }
                read => {
                    let (first, second) = read?;
                    let rules = self.normalize.iter().cloned();
                    let rules = rules.fold(DiffOptions::new(), DiffOptions::normalize);
                    let changes =
                        changes(&first, &second, &rules).map_err(|e| Failure::Usage(e.to_string()))?;
                    return Ok(changes.to_set());
                }
            }
        }
        if !self.normalize.is_empty() {
            return Err(Failure::Usage(
                "--normalize is for reports, not for dumps and recordings".to_owned(),
            ));
        }
        if self.file.is_stdin() || second.is_stdin() {
            return Err(Failure::Usage(
                "two dumps or recordings must be two files; standard input is not allowed".to_owned(),
            ));
        }
        let limits = self.reading.dump_options();
        let read = |input: &InputArgument| {
            let fix = |dump: &mut Dump| self.symbols.fix(dump, &limits);
            self.when.read(input.path(), &limits, Some(Moment::End), fix).map(|(dump, _)| dump)
        };
        let (before, after) = (read(&self.file)?, read(second)?);
        let change = HeapChange::new(before, after, &ProgramOptions::new())
            .map_err(|error| Failure::File(second.name(), error.into()))?;
        *options = core::mem::take(options).heap_change(change, [self.file.name(), second.name()]);
        Ok(ReportSet::new())
    }

    fn timeline(&self) -> Result<Timeline, Failure> {
        timeline(self.file.path(), &self.symbols, &self.reading.dump_options())
    }

    /// Reads standard input. Returns its report. For a dump, adds the flame graph to `options` and returns an empty
    /// report.
    fn read_stdin(&self, options: &mut HtmlOptions) -> Result<ReportSet, Failure> {
        let failure = |error: anyhow::Error| Failure::File(self.file.name(), error);
        let mut stdin = ReplayableInput::new(io::stdin().lock());
        let error = match file::read_from(&mut stdin, &self.reading.options()) {
            Ok(set) => return Ok(set),
            Err(error) => anyhow::Error::from(error),
        };
        match stdin.again().filter(|_| has_blocks("-", &error)) {
            None => Err(failure(error)),
            Some(stdin) => {
                let dump = dmd_analyze::read_from(stdin, &self.reading.dump_options())
                    .map_err(|error| failure(error.into()))?;
                let fix = |dump: &mut Dump| self.symbols.fix(dump, &self.reading.dump_options());
                let (dump, _) = self.when.select_in_dump(dump, self.file.path(), None, fix)?;
                *options = core::mem::take(options).flame_graph(flame_graph(dump));
                Ok(ReportSet::new())
            }
        }
    }

    fn flame_graph_of(&self, path: &Path) -> Result<FlameGraph, Failure> {
        let limits = self.reading.dump_options();
        let (dump, _) = self.when.read(path, &limits, None, |dump| self.symbols.fix(dump, &limits))?;
        Ok(flame_graph(dump))
    }
}

/// Returns the time line of a recording.
pub(super) fn timeline(
    path: &Path,
    symbols: &SymbolSearch,
    limits: &DumpReadOptions,
) -> Result<Timeline, Failure> {
    let mut recording = recorded::read(path, limits)?;
    let bounds = TimelineOptions::new();
    let fix = |dump: &mut Dump| symbols.fix(dump, limits);
    let timeline = Timeline::new(&mut recording, &ProgramOptions::new(), &bounds, fix);
    let timeline = timeline.map_err(|error| Failure::File(path.display().to_string(), error.into()))?;
    recorded::say_warnings(path, &recording);
    Ok(timeline)
}

/// Returns the flame graph of a dump that is already symbolized.
pub(super) fn flame_graph(dump: Dump) -> FlameGraph {
    let options = AnalyzeOptions::new()
        .max_frames(usize::MAX)
        .limit(usize::MAX)
        .ignore_alloc_fns(true)
        .fold(true)
        .type_frames(true)
        .estimate(true);
    Analysis::new(dump, &options).flame_graph(FRAMES)
}

/// Whether reading a report failed because the file has blocks: it is a dump, or a profile of another program.
pub(super) fn has_blocks(name: &str, error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ReadError::Version(version)) if version == "5")
        || matches!(FileKind::detect(Path::new(name)), Some(FileKind::HeapProfile | FileKind::Pprof))
}
