//! `about-memory html`: a report, a diff of two reports or a DMD dump as one page for a browser.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use about_memory::{DiffOptions, HtmlOptions, NormalizeRule, changes};
use clap::Args;
use dmd::analyze::recording::Recording;
use dmd::analyze::{self, Analysis, AnalyzeOptions, Dump, FlameGraph};
use memory_report::{ReadError, ReportSet, file};

use super::dump_limits;
use super::input::{Input, Reading};
use super::recorded::When;
use super::replay::Replay;
use super::symbols::Symbols;
use super::{Failure, new_file};

/// Most frames of a flame graph: a browser draws this many without delay.
const FRAMES: usize = 20_000;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory html memory-report.json.gz -o page.html
  about-memory html before.json.gz after.json.gz -o changes.html
  zcat memory-report.json.gz | about-memory html - -o - > page.html
  about-memory html dmd.json.gz -o stacks.html
  about-memory html my-program.dmdrec --at 12.5s -o stacks.html
  about-memory html memory-report.json.gz --dmd dmd.json.gz -o page.html

The page of a DMD dump shows a flame graph: all stacks as one tree, without frames of allocators and libraries. It
keeps the largest 20,000 frames; `(small)` stands for the rest below a frame.

The page is one file that loads nothing else. It shows all names in a report as plain text.";

#[derive(Args)]
pub(crate) struct Html {
    /// The report file, DMD dump or recording, compressed or not; `-` for standard input (not a recording).
    file: Input,
    /// A later report: the page shows what changed.
    #[arg(conflicts_with_all = ["at", "between"])]
    second: Option<Input>,
    /// The page to write; `-` for standard output.
    #[arg(long, short, value_name = "PAGE")]
    output: PathBuf,
    /// The title of the page. [default: the names of the files]
    #[arg(long)]
    title: Option<String>,
    /// Replace matches in all names before the comparison. Repeatable.
    #[arg(long, value_name = "REGEX=>REPLACEMENT", value_parser = NormalizeRule::parse, requires = "second")]
    normalize: Vec<NormalizeRule>,
    /// A DMD dump that belongs to the report: the page also shows its flame graph.
    #[arg(long, value_name = "DUMP", conflicts_with = "second")]
    dmd: Option<PathBuf>,
    #[command(flatten)]
    when: When,
    #[command(flatten)]
    symbols: Symbols,
    #[command(flatten)]
    reading: Reading,
}

impl Html {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut options = HtmlOptions::new();
        if self.file.is_stdin() && self.dmd.as_deref().is_some_and(dump_limits::is_stdin) {
            return Err(Failure::Usage("only one file can be standard input".to_owned()));
        }
        let set = if self.file.is_stdin() && self.may_be_dump() {
            self.read_stdin(&mut options)?
        } else if self.may_be_dump() && Recording::is_at(self.file.path()) {
            options.flame_graph = Some(self.flame_graph_of(self.file.path())?);
            ReportSet::new()
        } else {
            match self.read() {
                Err(Failure::File(_, error)) if self.may_be_dump() && is_version_of_dumps(&error) => {
                    options.flame_graph = Some(self.flame_graph_of(self.file.path())?);
                    ReportSet::new()
                }
                set => set?,
            }
        };
        if let Some(dump) = &self.dmd {
            options.flame_graph = Some(self.flame_graph_of(dump)?);
        }
        // Only this user may read the page of a live process. The umask decides who may read the page of a file.
        let mut private = false;
        for input in [Some(&self.file), self.second.as_ref()].into_iter().flatten() {
            private |= input.process()?.is_some();
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

    fn may_be_dump(&self) -> bool {
        self.second.is_none() && self.dmd.is_none()
    }

    /// Reads a report, or the flame graph of a dump and an empty report.
    fn read_stdin(&self, options: &mut HtmlOptions) -> Result<ReportSet, Failure> {
        let failure = |error: anyhow::Error| Failure::File(self.file.name(), error);
        let mut stdin = Replay::new(io::stdin().lock());
        let error = match file::read_from(&mut stdin, &self.reading.options()) {
            Ok(set) => return Ok(set),
            Err(error) => anyhow::Error::from(error),
        };
        match stdin.again().filter(|_| is_version_of_dumps(&error)) {
            None => Err(failure(error)),
            Some(stdin) => {
                let dump = analyze::read_from(stdin, &self.reading.dump_options())
                    .map_err(|error| failure(error.into()))?;
                let fix = |dump: &mut Dump| self.symbols.fix(dump, &self.reading.dump_options());
                let (dump, _) = self.when.of_dump(dump, self.file.path(), None, fix)?;
                options.flame_graph = Some(flame_graph(dump));
                Ok(ReportSet::new())
            }
        }
    }

    fn flame_graph_of(&self, path: &Path) -> Result<FlameGraph, Failure> {
        let limits = self.reading.dump_options();
        let (dump, _) = self.when.read(path, &limits, None, |dump| self.symbols.fix(dump, &limits))?;
        Ok(flame_graph(dump))
    }

    fn read(&self) -> Result<ReportSet, Failure> {
        let Some(second) = &self.second else { return self.file.read(&self.reading) };
        let options = self.normalize.iter().cloned().fold(DiffOptions::new(), DiffOptions::normalize);
        let (first, second) = Input::read_two(&self.file, second, &self.reading)?;
        let changes = changes(&first, &second, &options).map_err(|e| Failure::Usage(e.to_string()))?;
        Ok(changes.to_set())
    }
}

/// The flame graph of a dump with symbols.
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

/// Whether reading a report failed since the file is a DMD dump.
pub(super) fn is_version_of_dumps(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ReadError::Version(version)) if version == "5")
}
