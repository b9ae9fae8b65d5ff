//! `about-memory heap`: questions about the blocks of a heap. Most questions are about types.

mod block;
mod coverage;
mod libraries;
mod source;
mod tables;
mod tasks;
mod type_spelling;
mod types;
mod waste;
mod why;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use about_memory::live::ForkedProcess;
use clap::{Args, Subcommand};
use dmd_analyze::Dump;
use dmd_analyze::program::bytes;
use dmd_analyze::symbolize::{MappedFile, debug_file};
use object::{Object as _, ObjectSection as _};
use typed_heap::{DebugInfo, Library, MemorySource, TypedError, TypedHeap};

use super::dump_limits::DumpLimits;
use super::file_kind::FileKind;
use super::input::InputArgument;
use super::symbols::SymbolSearch;
use super::{Failure, say};
use source::HeapSource;

pub(crate) use tables::{save_graph, saver};
pub(crate) use types::{TypesCommand, name as field_name};
pub(crate) use waste::unused_parts;

pub(crate) const EXAMPLES: &str = "\
Examples:
  about-memory heap types 1234                       # a running process
  about-memory heap types scan.json.gz --by field
  about-memory heap waste core.1234
  about-memory heap why scan.json.gz '[my_crate::Session]'
  about-memory heap coverage dmd.json.gz

`about-memory heap types --help` describes how the program must be built and run.";

/// The kinds of files that questions about types read. A question also reads a program, for its debug information.
pub(super) const TYPED: &[FileKind] = &[FileKind::Dump, FileKind::Core, FileKind::Program];

#[derive(Args)]
pub(crate) struct HeapCommand {
    #[command(subcommand)]
    question: HeapQuestion,
}

impl HeapCommand {
    /// Returns the kinds of files that the question reads.
    pub(super) fn kinds(&self) -> &'static [FileKind] {
        self.question.kinds()
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        self.question.run()
    }
}

/// A question about a heap. Each question is also a hidden command, under its old name.
#[derive(Subcommand)]
pub(crate) enum HeapQuestion {
    /// Show which types the heap consists of.
    #[command(after_help = types::EXAMPLES)]
    Types(Box<TypesCommand>),
    /// Show memory that vectors, tables, trees and enums hold but do not use.
    #[command(after_help = waste::EXAMPLES)]
    Waste(Box<waste::WasteCommand>),
    /// Show which fields keep the blocks of a type, or a block, alive.
    #[command(after_help = why::EXAMPLES)]
    Why(Box<why::WhyCommand>),
    /// Show at which `await` async tasks wait, and the memory that they keep alive.
    #[command(after_help = tasks::EXAMPLES)]
    Tasks(Box<tasks::TasksCommand>),
    /// Show which blocks point to a block.
    #[command(after_help = block::EXAMPLES, args_override_self = true)]
    Block(block::BlockCommand),
    /// Show how much of the heap the memory reporters cover.
    #[command(after_help = coverage::EXAMPLES)]
    Coverage(coverage::CoverageCommand),
}

impl HeapQuestion {
    /// Returns the kinds of files that the question reads.
    pub(super) fn kinds(&self) -> &'static [FileKind] {
        match self {
            Self::Types(_) | Self::Waste(_) | Self::Why(_) | Self::Tasks(_) => TYPED,
            Self::Block(_) | Self::Coverage(_) => &[FileKind::Dump],
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Types(types) => types.run(),
            Self::Waste(waste) => waste.run(),
            Self::Why(why) => why.run(),
            Self::Tasks(tasks) => tasks.run(),
            Self::Block(block) => block.run(),
            Self::Coverage(coverage) => coverage.run(),
        }
    }
}

/// Appends the text that ends the help of all questions about types.
macro_rules! about {
    ($examples:literal) => {
        concat!(
            $examples,
            "\n
Build the program with `debug = 2` below [profile.release] in Cargo.toml; this changes no code. Then start it with
about-memory run --listen -- PROGRAM. A running process makes a copy of itself in memory, and this command reads the copy.
The core file of a crash has the same contents. A dump of scan mode (about-memory run --mode scan -- PROGRAM) lacks statics."
        )
    };
}
use about;

/// The end of a sentence about facts that only full debug information has.
pub(super) const NO_FIELDS: &str = "unknown: the program has no full debug information; \
                                    build it with `debug = 2` below [profile.release] in Cargo.toml.";

/// The number of rows in a text without `--limit`.
const ROWS: usize = 20;

/// In tables with shortened texts, a line has at most this many columns.
const LINE: usize = 140;

/// The heap that a question is about, and how much of the answer to show.
#[derive(Args)]
pub(crate) struct HeapInput {
    /// The process id or the name of a running process that DMD records, the core file of such a process, or a dump of
    /// scan mode.
    source: InputArgument,
    /// Show at most this many rows of each table. [default: 20; all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Write JSON instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: TypedHeapReader,
}

impl HeapInput {
    /// Reads the heap and calls `show` with it.
    fn with(
        &self,
        show: impl FnOnce(&TypedHeap<'_>, &dyn MemorySource, &Dump) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.reading.with(&self.source, None, show)
    }

    fn failure(&self, error: anyhow::Error) -> Failure {
        Failure::File(self.source.name(), error)
    }

    /// The number of rows to show.
    fn rows(&self) -> usize {
        self.limit.unwrap_or(if self.json { usize::MAX } else { ROWS })
    }
}

/// The options for reading a typed heap.
#[derive(Args, Clone)]
pub(crate) struct TypedHeapReader {
    /// A core file of the same moment as the dump. It contains the statics of the program.
    #[arg(long, value_name = "FILE")]
    core: Option<PathBuf>,
    /// The program with its debug information, if it is not at the path in the dump.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    #[command(flatten)]
    symbols: SymbolSearch,
    #[command(flatten)]
    limits: DumpLimits,
}

impl TypedHeapReader {
    /// Creates a reader with these symbols and limits.
    pub(crate) fn new(symbols: SymbolSearch, limits: DumpLimits) -> Self {
        Self { core: None, program: None, symbols, limits }
    }

    /// Whether the user gave an option that only a typed heap needs.
    pub(crate) fn is_chosen(&self) -> bool {
        self.core.is_some() || self.program.is_some()
    }

    /// Reads the heap of a source and calls `show` with it. A process must answer within `timeout`; `None` selects a
    /// default.
    pub(crate) fn with(
        &self,
        source: &InputArgument,
        timeout: Option<Duration>,
        show: impl FnOnce(&TypedHeap<'_>, &dyn MemorySource, &Dump) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let timeout = timeout.unwrap_or(source::TIMEOUT);
        let opened = HeapSource::open(source, self.core.as_ref(), timeout, &self.limits.options())?;
        self.with_opened(&source.name(), opened, show)
    }

    /// Reads the heap of a copy of a process, and gives it to `show`.
    pub(crate) fn with_copy(
        &self,
        pid: u32,
        copy: ForkedProcess,
        show: impl FnOnce(&TypedHeap<'_>, &dyn MemorySource, &Dump) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let opened = HeapSource::open_copy(pid, copy, &self.limits.options())?;
        self.with_opened(&format!("process {pid}"), opened, show)
    }

    fn with_opened(
        &self,
        name: &str,
        mut opened: HeapSource,
        show: impl FnOnce(&TypedHeap<'_>, &dyn MemorySource, &Dump) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let limits = self.limits.options();
        let symbols = match self.program.as_deref().and_then(Path::parent) {
            // The folder of the user's file is also searched for the names of functions.
            Some(folder) => self.symbols.clone().with_folder(folder),
            None => self.symbols.clone(),
        };
        symbols.fix(&mut opened.dump, &limits);
        let module = opened.dump.modules().first();
        let bias = module.and_then(|module| module.bias).unwrap_or(0);
        let program = match (&self.program, module) {
            (Some(program), _) => program.clone(),
            (None, Some(module)) => PathBuf::from(&module.path),
            (None, None) => {
                let reason = anyhow::anyhow!("the dump does not name its program; name it with --program");
                return Err(Failure::File(name.to_owned(), reason));
            }
        };
        let build_id = module.map_or("", |module| &module.build_id);
        // With a build id, the search could replace the file by another file with this build id. If the user chose the
        // file, the search gets no build id. `program_file` checks the build id of the file.
        let expected = if self.program.is_some() { "" } else { build_id };
        let found = debug_file(&program, expected, &symbols.all_options(&limits));
        let found = found.unwrap_or(program);
        let file = program_file(&found, build_id, limits.byte_limit())?;
        let left = limits.byte_limit().saturating_sub(debug_bytes(&file));
        let others = libraries::read(&opened.dump, &symbols.all_options(&limits), left);
        let info = types_of(&found, &file, &libraries::with_bias(&others, bias))?;
        let of_dump = |error: TypedError| Failure::File(name.to_owned(), error.into());
        let shown = opened.with(|dump, memory| {
            let heap = TypedHeap::new(dump, &info, bias, memory)?;
            if heap.overlapping() > 0 {
                say(&format!(
                    "{name}: {} blocks that changed while the dump was written are left out",
                    heap.overlapping()
                ));
            }
            let whole = |()| opened.is_whole().map_err(|error| Failure::File(name.to_owned(), error));
            Ok(whole(()).and_then(|()| show(&heap, memory, dump)).and_then(whole))
        });
        shown.map_err(of_dump)?
    }
}

/// Maps a program or its debug file. The file must come from the build that ran: if the file has a build id and
/// `recorded` is not empty, both must be equal. The file's sections of debug information may have `max_bytes` in total.
fn program_file(program: &Path, recorded: &str, max_bytes: u64) -> Result<MappedFile, Failure> {
    let failure = |error: anyhow::Error| Failure::File(program.display().to_string(), error);
    // Rejects a device or a pipe that a dump names: reading it may never end. A sparse file can pretend to have huge
    // sections, so their sizes are checked below.
    let file = MappedFile::open(program).map_err(|error| {
        failure(match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => TypedError::from(error).into(),
            _ => TypedError::NotAProgram(error.to_string()).into(),
        })
    })?;
    if let Some(own) = build_id(&file).filter(|own| !recorded.is_empty() && own != recorded) {
        return Err(failure(anyhow::anyhow!(
            "is not the build that ran: its build id is {own}, not {recorded}"
        )));
    }
    let bytes = debug_bytes(&file);
    if bytes > max_bytes {
        return Err(failure(anyhow::anyhow!(
            "its debug information has {bytes} bytes, more than {max_bytes}; raise the limit with --max-bytes"
        )));
    }
    Ok(file)
}

/// The debug information of a program and of its libraries.
fn types_of(program: &Path, file: &[u8], libraries: &[Library<'_>]) -> Result<DebugInfo, Failure> {
    let failure = |error: anyhow::Error| Failure::File(program.display().to_string(), error);
    let mut read = DebugInfo::read_with(file, libraries);
    if let Err(error) = &read
        && !libraries.is_empty()
    {
        say(&format!("the types of shared libraries are missing: {error}"));
        read = DebugInfo::read(file);
    }
    let info = read.map_err(|error| failure(error.into()))?;
    if info.vtable_count() == 0 {
        say(&format!(
            "{}: without full debug information no type has fields; add `debug = 2` to its profile in Cargo.toml",
            program.display()
        ));
    }
    Ok(info)
}

/// Returns the bytes of all sections of debug information, as the file's headers state them.
fn debug_bytes(program: &[u8]) -> u64 {
    let Ok(file) = object::File::parse(program) else { return 0 };
    let is_debug = |name: &[u8]| name.starts_with(b".debug_") || name.starts_with(b".zdebug_");
    let sections = file.sections().filter(|section| section.name_bytes().is_ok_and(is_debug));
    sections.map(|section| section.size()).fold(0, u64::saturating_add)
}

/// The build id of a program, if it has one.
fn build_id(program: &[u8]) -> Option<String> {
    let id = object::File::parse(program).ok()?.build_id().ok()??;
    Some(id.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// A table in a text: for each row three columns of numbers and a last column of text.
struct AmountTable {
    rows: Vec<([String; 3], String)>,
}

impl AmountTable {
    /// Makes rows from bytes, blocks and a text. `whole` is the amount of 100 %.
    fn new(rows: impl IntoIterator<Item = (u64, u64, String)>, whole: u64) -> Self {
        Self::with_numbers(
            rows.into_iter().map(|(of_bytes, blocks, text)| (of_bytes, counted(blocks), text)),
            whole,
        )
    }

    /// Makes rows from bytes, a number with its unit, and a text. `whole` is the amount of 100 %.
    fn with_numbers(rows: impl IntoIterator<Item = (u64, String, String)>, whole: u64) -> Self {
        let row = |(of_bytes, number, text): (u64, String, String)| {
            let percent = 100.0 * of_bytes as f64 / whole.max(1) as f64;
            ([size(of_bytes), format!("{percent:.2}%"), number], text)
        };
        Self { rows: rows.into_iter().map(row).collect() }
    }

    /// Returns the width of a line before its text, in characters.
    fn columns_before_text(&self) -> usize {
        let width = |column: usize| self.rows.iter().map(|(row, _)| row[column].len()).max().unwrap_or(0);
        (0..3).map(|column| "  ".len() + width(column)).sum::<usize>() + "  ".len()
    }

    fn text(&self) -> String {
        let width = |column: usize| self.rows.iter().map(|(row, _)| row[column].len()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2)];
        let mut text = String::new();
        for (columns, last) in &self.rows {
            for (column, width) in columns.iter().zip(widths) {
                let _ = write!(text, "  {column:>width$}");
            }
            let _ = writeln!(text, "  {}", about_memory::escape(last));
        }
        text
    }
}

/// Returns the number of some rows, and the sums of their blocks and bytes.
fn sums(rows: impl Iterator<Item = (u64, u128)>) -> (usize, u64, u128) {
    rows.fold((0, 0, 0), |(rows, blocks, bytes), row| (rows + 1, blocks + row.0, bytes + row.1))
}

pub(super) fn size(amount: u64) -> String {
    bytes(amount.into())
}

pub(super) fn counted(blocks: u64) -> String {
    format!("{blocks} {}", if blocks == 1 { "block" } else { "blocks" })
}

/// Returns the line that counts the rows beyond `limit`. The line is empty if all rows are shown.
fn left_out(rows: usize, limit: usize) -> String {
    match rows.saturating_sub(limit) {
        0 => String::new(),
        more => format!("  ... and {more} more; see --limit\n"),
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output)
}
