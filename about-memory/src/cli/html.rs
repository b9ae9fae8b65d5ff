//! `about-memory html`: a report, a diff of two reports or a DMD dump as one page for a browser.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use about_memory::{DiffOptions, HtmlOptions, NormalizeRule, changes};
use clap::Args;
use dmd::analyze::program::Overview;
use dmd::analyze::{self, Analysis, AnalyzeError, AnalyzeOptions, Dump, FlameGraph};
use memory_report::{ReadError, ReportSet, file};
use tempfile::Builder;

use super::Failure;
use super::dump_limits;
use super::input::{Input, Reading};
use super::program_view::At;
use super::replay::Replay;
use super::symbols::Symbols;

/// Most frames of a flame graph: a browser draws this many without delay.
const FRAMES: usize = 20_000;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory html memory-report.json.gz -o page.html
  about-memory html before.json.gz after.json.gz -o changes.html
  zcat memory-report.json.gz | about-memory html - -o - > page.html
  about-memory html dmd.json.gz -o stacks.html
  about-memory html memory-report.json.gz --dmd dmd.json.gz -o page.html

The page of a DMD dump shows a flame graph: all stacks as one tree, without frames of allocators and libraries. It
keeps the largest 20,000 frames; `(small)` stands for the rest below a frame.

The page is one file that loads nothing else. It shows all names in a report as plain text.";

#[derive(Args)]
pub(crate) struct Html {
    /// The report file or DMD dump, compressed or not; `-` for standard input.
    file: Input,
    /// A later report: the page shows what changed.
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
    /// Of a DMD dump, the time whose blocks to show. [default: peak if no reporter reported a block and the heap has
    /// shrunk by a tenth since, else end]
    #[arg(long, value_enum, conflicts_with = "second")]
    at: Option<At>,
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
        write(&self.output, &page, private)
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
                options.flame_graph = Some(self.flame_graph(dump).map_err(|error| failure(error.into()))?);
                Ok(ReportSet::new())
            }
        }
    }

    fn flame_graph_of(&self, path: &Path) -> Result<FlameGraph, Failure> {
        let dump = dump_limits::read(path, &self.reading.dump_options())?;
        self.flame_graph(dump).map_err(|error| Failure::File(path.display().to_string(), error.into()))
    }

    fn flame_graph(&self, mut dump: Dump) -> Result<FlameGraph, AnalyzeError> {
        self.symbols.fix(&mut dump, &self.reading.dump_options());
        let at = Overview::new(&dump, self.at.map(At::time)).at;
        Ok(flame_graph(dump.at(at)?))
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

fn is_version_of_dumps(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ReadError::Version(version)) if version == "5")
}

/// Writes a temporary file in the same folder and renames it, so that nobody sees half a page. Writes directly to
/// anything but a plain file, such as `/dev/null` or a pipe. Where files have no mode, the folder decides who reads the
/// page, private or not.
#[cfg_attr(not(unix), allow(unused_variables, reason = "files have no mode"))]
pub(super) fn write(path: &Path, page: &str, private: bool) -> io::Result<()> {
    if path.exists() && !fs::metadata(path)?.is_file() {
        return fs::write(path, page);
    }
    let mut beside = Builder::new();
    beside.prefix(".about-memory-").suffix(".incomplete");
    #[cfg(unix)]
    if !private {
        beside.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    // The name is random. Dropping the file removes it, unless it has become the page.
    let mut file = beside.tempfile_in(folder)?;
    file.write_all(page.as_bytes())?;
    file.persist(path)?;
    Ok(())
}
