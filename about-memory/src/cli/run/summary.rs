//! The text of `run` after the program has ended: the code that held the program's memory, and the next commands.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use about_memory::HtmlOptions;
use dmd_analyze::program::{HeapOverview, HolderKey};
use dmd_analyze::recording::Moment;
use dmd_analyze::{Dump, DumpReadOptions, DumpTime};
use memory_report::ReportSet;

use super::super::symbols::SymbolSearch;
use super::super::{Failure, first_screen, html, new_file, program_view, say};
use super::resident::ResidentComparison;
use super::types::TypeText;

/// Facts about the process of a dump that are not in the dump.
pub(super) struct SummaryFacts<'t> {
    /// Whether DMD recorded only a sample of the blocks.
    pub(super) is_sample: bool,
    /// The time that the user chose.
    pub(super) at: Option<Moment>,
    pub(super) types: Option<&'t TypeText>,
}

impl SummaryFacts<'_> {
    /// Returns the time of the tables: the end if the user chose the end; the peak if the user chose another time, or
    /// chose no time and the summary shows types. `None` means the usual time of the dump.
    fn at(&self) -> Option<DumpTime> {
        match self.at {
            Some(Moment::End) => Some(DumpTime::End),
            Some(_) => Some(DumpTime::Peak),
            None => self.types.map(|_| DumpTime::Peak),
        }
    }
}

/// Prints the summary of a dump on standard error.
pub(super) fn print(path: &Path, facts: &SummaryFacts<'_>) -> Result<(), Failure> {
    let dump = read(path)?;
    let resident = ResidentComparison::new(&dump, facts.is_sample);
    let resident = resident.map(|compared| compared.to_string()).unwrap_or_default();
    let types = facts.types.map(|types| types.text(dump.peak().map(dmd_analyze::DumpPeak::bytes)));
    let overview = HeapOverview::new(&dump, facts.at());
    let dump = at(dump, &overview, path)?;
    let advice = dump.line_advice();
    let view = program_view::options(io::stderr().is_terminal());
    let memory = first_screen::resident_memory(&dump, &view);
    let Some(mut summary) = first_screen::heap_summary(dump, &view) else {
        let text = resident + &types.unwrap_or_default() + &memory;
        if !text.is_empty() {
            // If stderr is closed, there is no reader. The same applies below.
            let _ = write!(io::stderr(), "\n{text}");
        }
        return Ok(());
    };
    let types = match types {
        Some(types) => {
            // The typed heap knows types more exactly than stacks do, so the summary keeps only the table by site.
            summary.tables.retain(|table| table.by == HolderKey::Site);
            types + "\n"
        }
        None => String::new(),
    };
    let gap = if memory.is_empty() { "" } else { "\n" };
    let mut text = format!("\n{resident}{overview}{types}{summary}\n{memory}{gap}");
    if let Some(advice) = advice {
        text += &format!("{advice}\n");
    }
    let commands = [
        ("dmd", "", "the stacks, the largest first"),
        ("html", " -o heap.html", "a flame graph in the browser"),
    ];
    text += &first_screen::next_commands(&path.display().to_string(), &commands);
    let _ = io::stderr().write_all(text.as_bytes());
    Ok(())
}

/// Prints the types of a process that wrote no dump.
pub(super) fn print_types(types: &TypeText) {
    let _ = write!(io::stderr(), "\n{}", types.text(None));
}

/// Writes the page of a dump into the dump's folder, and opens the page in the browser.
pub(super) fn open(path: &Path) -> Result<(), Failure> {
    let page = page_of(path);
    let failure = |reason: String| Failure::File(page.display().to_string(), anyhow::anyhow!(reason));
    let dump = read(path)?;
    let overview = HeapOverview::new(&dump, None);
    let graph = html::flame_graph(at(dump, &overview, path)?);
    let options = HtmlOptions::new().flame_graph(graph);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = about_memory::html(&ReportSet::new(), &options.title(name));
    new_file::write(&page, true, |out| out.write_all(text.as_bytes()))
        .map_err(|error| failure(format!("cannot be written: {error}")))?;
    say(&format!("wrote {}", page.display()));
    // Linux has xdg-open, macOS has open.
    let start = |opener: &str| Command::new(opener).arg(&page).stdin(Stdio::null()).status();
    match start("xdg-open").or_else(|_| start("open")) {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failure(format!("the browser cannot open it: {status}"))),
        Err(error) => Err(failure(format!("xdg-open cannot be started: {error}"))),
    }
}

fn at(dump: Dump, overview: &HeapOverview, path: &Path) -> Result<Dump, Failure> {
    dump.at(overview.at).map_err(|error| Failure::File(path.display().to_string(), error.into()))
}

/// Returns the name of the page: `dmd-7.html` for `dmd-7.json.gz`.
fn page_of(dump: &Path) -> PathBuf {
    let name = dump.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let base = [".gz", ".json"].iter().fold(&*name, |name, end| name.strip_suffix(end).unwrap_or(name));
    dump.with_file_name(format!("{base}.html"))
}

fn read(path: &Path) -> Result<Dump, Failure> {
    let limits = DumpReadOptions::new();
    let failure = |error: anyhow::Error| Failure::File(path.display().to_string(), error);
    let mut dump = dmd_analyze::read_with(path, &limits).map_err(|error| failure(error.into()))?;
    SymbolSearch::default().fix_quietly(&mut dump, &limits);
    Ok(dump)
}
