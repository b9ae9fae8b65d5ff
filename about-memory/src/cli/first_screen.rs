//! The first screen of a file that is not a report, with the next commands to type.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use dmd_analyze::program::{HeapGrowth, HeapSummary, ProgramOptions, ResidentMemory, UsageHistory, bytes};
use dmd_analyze::recording::Moment;
use dmd_analyze::{Analysis, AnalyzeError, AnalyzeOptions, Dump, DumpReadOptions, Mode};

use super::diff::profiles;
use super::dump_limits::DumpLimits;
use super::export::profile::{self, StackSource};
use super::file_kind::FileKind;
use super::heap::TypesCommand;
use super::input::{InputArgument, ReadLimits};
use super::program_view::{self, on_terminal};
use super::recorded::{self, BlockTime};
use super::symbols::SymbolSearch;
use super::{Failure, snapshot};

/// The number of rows in each table of a recording.
const ROWS: usize = 5;

/// Rows of the table of resident memory.
const OWNERS: usize = 8;

/// Writes the first screen of a file of this kind.
pub(super) fn show(kind: FileKind, input: &InputArgument, limits: &ReadLimits) -> Result<(), Failure> {
    let max_bytes = limits.max_bytes();
    let mut commands = commands(kind).to_vec();
    let text = match kind {
        FileKind::Dump | FileKind::HeapProfile => dump(input.path(), limits, &mut commands)?,
        FileKind::Recording => recording(input.path(), limits)?,
        FileKind::Snapshot => snapshot::first_screen(input.path(), max_bytes)?,
        FileKind::Pprof => match profile::read(input, &DumpLimits::with_max_bytes(max_bytes))? {
            // A difference of profiles has negative amounts, and other profiles have no blocks.
            StackSource::Pprof(stacks) if memory_export::dmd::dump(&stacks).is_none() => {
                commands.drain(..2);
                profiles::largest_stacks(&stacks)
            }
            _ => dump(input.path(), limits, &mut commands)?,
        },
        _ => {
            TypesCommand::first_screen(input.clone(), max_bytes).run()?;
            String::new()
        }
    };
    print(&format!("{text}\n{}", next_commands(&input.name(), &commands)))
}

/// A command to type next: its words before the file's name, its words after the name, and what the command shows.
pub(super) type NextCommand = (&'static str, &'static str, &'static str);

/// The next commands for a file of this kind.
fn commands(kind: FileKind) -> &'static [NextCommand] {
    match kind {
        FileKind::Report => &[
            ("show", " --verbose", "all paths, with exact amounts and descriptions"),
            ("diff", " LATER", "what changed from this report to LATER"),
            ("html", " -o page.html", "a page for a browser"),
        ],
        FileKind::Dump => &[
            ("dmd", "", "the stacks, the largest first"),
            ("dmd", " --by crate,type,site", "a tree of crates, types and sites"),
            ("html", " -o heap.html", "a flame graph for a browser"),
        ],
        FileKind::Recording => &[
            ("leaks", "", "the blocks that the program never freed"),
            ("dmd", " --at peak", "the stacks at the peak"),
            ("html", " -o heap.html", "a page with the heap over time"),
        ],
        FileKind::Snapshot => &[
            ("snapshot dominators", "", "the nodes that retain the most memory"),
            ("snapshot tree", "", "all nodes by type"),
            ("serve", "", "the snapshot in a browser"),
        ],
        FileKind::HeapProfile => &[
            ("dmd", "", "the stacks, the largest first"),
            ("dmd", " --by crate,type,site", "a tree of crates, types and sites"),
            ("diff", " LATER", "the stacks that grew from this profile to LATER"),
            ("html", " -o heap.html", "a flame graph for a browser"),
        ],
        FileKind::Pprof => &[
            ("dmd", "", "the stacks, the largest first"),
            ("dmd", " --by crate,type,site", "a tree of crates, types and sites"),
            ("diff", " LATER", "the stacks that grew from this profile to LATER"),
            ("export", " -o heap.speedscope.json", "a flame graph for speedscope"),
        ],
        _ => &[
            ("heap waste", "", "allocated memory that the program does not use"),
            ("heap why", " TYPE", "the fields that keep blocks of a type alive"),
            ("heap tasks", "", "async tasks, and the memory that they keep alive"),
        ],
    }
}

/// The lines that name the next commands.
pub(super) fn next_commands(file: &str, commands: &[NextCommand]) -> String {
    let file = match file.contains(|c: char| c.is_whitespace() || "'\"$&;()*?<>|\\`!#~".contains(c)) {
        true => format!("'{}'", file.replace('\'', "'\\''")),
        false => file.to_owned(),
    };
    let lines: Vec<_> =
        commands.iter().map(|(before, after, _)| format!("about-memory {before} {file}{after}")).collect();
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (number, (line, (_, _, what))) in lines.iter().zip(commands).enumerate() {
        let start = if number == 0 { "Next: " } else { "      " };
        text += &format!("{start}{:width$}  {what}\n", about_memory::escape(line));
    }
    text
}

/// The lines that name the next commands for a report.
pub(super) fn after_report(file: &str) -> String {
    next_commands(file, commands(FileKind::Report))
}

fn dump(path: &Path, limits: &ReadLimits, commands: &mut Vec<NextCommand>) -> Result<String, Failure> {
    let options = limits.dump_options();
    let fix = |dump: &mut Dump| SymbolSearch::default().fix(dump, &options);
    let (dump, overview) = BlockTime::default().read(path, &options, None, fix)?;
    match dump.mode() {
        Mode::DarkMatter => commands.push(("heap coverage", "", "how much of the heap the reporters cover")),
        Mode::Scan => commands.push(("heap types", "", "the types of all blocks")),
        _ => {}
    }
    let view = program_view::options(on_terminal());
    let memory = resident_memory(&dump, &view);
    Ok(match heap_summary(dump, &view) {
        None => format!("The dump has no blocks.\n{memory}"),
        Some(summary) if memory.is_empty() => format!("{overview}{summary}"),
        Some(summary) => format!("{overview}{summary}\n{memory}"),
    })
}

/// Returns the memory of the process by owner, as a text. If DMD could not read the memory, the text is the reason. The
/// text is empty if the dump does not have the memory.
pub(super) fn resident_memory(dump: &Dump, view: &ProgramOptions) -> String {
    match ResidentMemory::new(dump, view) {
        Ok(memory) => memory.limit(OWNERS).to_string(),
        Err(error @ AnalyzeError::MemoryUnreadable(_)) => format!("No table of resident memory: {error}.\n"),
        Err(_) => String::new(),
    }
}

/// Returns the code and the types that hold the most memory. `None` if the dump has no block.
pub(super) fn heap_summary(dump: Dump, view: &ProgramOptions) -> Option<HeapSummary> {
    let summary = summary(dump, view);
    (summary.total.num != 0).then_some(summary)
}

/// Prints the growth of a process that was tracked: the blocks of its dump.
pub(super) fn growth_of_dump(path: &Path) -> Result<(), Failure> {
    let options = DumpReadOptions::new();
    let fix = |dump: &mut Dump| SymbolSearch::default().fix_quietly(dump, &options);
    let (dump, _) = BlockTime::default().read(path, &options, Some(Moment::End), fix)?;
    let summary = summary(dump, &program_view::options(on_terminal()));
    let growth = bytes(summary.total.usable());
    let mark = if summary.is_estimated() { "~" } else { "" };
    let text = match summary.total.num {
        0 => "Growth: all blocks that were allocated in this time are freed.\n".to_owned(),
        _ => format!("Growth: {mark}{growth}, allocated in this time and still alive.\n\n{summary}"),
    };
    print(&text)
}

/// Prints the growth of a process that was recorded for a while.
pub(super) fn growth_of_recording(path: &Path) -> Result<(), Failure> {
    let options = DumpReadOptions::new();
    let fix = |dump: &mut Dump| SymbolSearch::default().fix_quietly(dump, &options);
    let view = program_view::options(on_terminal());
    let mut recording = recorded::read(path, &options)?;
    let times = [Moment::After(Duration::ZERO), Moment::End];
    let growth = HeapGrowth::new(&mut recording, times, &view, fix)
        .map_err(|error| Failure::File(path.display().to_string(), error.into()))?;
    print(&growth.text(ROWS, &view).to_string())
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::Output)
}

fn summary(dump: Dump, view: &ProgramOptions) -> HeapSummary {
    let options = AnalyzeOptions::new().max_frames(usize::MAX).limit(usize::MAX).estimate(true).types(true);
    HeapSummary::new(&Analysis::new(dump, &options), view)
}

fn recording(path: &Path, limits: &ReadLimits) -> Result<String, Failure> {
    let options = limits.dump_options();
    let mut recording = recorded::read(path, &options)?;
    let view = program_view::options(on_terminal());
    let history =
        UsageHistory::new(&mut recording, &view, |dump| SymbolSearch::default().fix(dump, &options))
            .map_err(|error| Failure::File(path.display().to_string(), error.into()))?;
    recorded::say_warnings(path, &recording);
    Ok(history.text(ROWS, &view).to_string())
}
