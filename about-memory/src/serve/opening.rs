//! Dumps and recordings that the page opens, as the data that it shows, with what writes files of them.

use core::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use dmd_analyze::Dump;
use dmd_analyze::Suggestions;
use dmd_analyze::program::{HeapBlocks, ProgramOptions};
use dmd_analyze::symbolize::SymbolOptions;
use memory_export::pprof;
use serde_json::json;

use crate::HtmlOptions;
use crate::export::{self, StacksFormat, StacksOptions, Window};

/// The most suggestions of a dump.
const MOST: usize = 200;

/// What a page wants of stacks beside the views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "who writes files writes all of them")]
pub enum StacksFile {
    /// A file for another tool.
    Format(StacksFormat),
    /// What to report, as [`write_suggestions`] writes it.
    Suggestions,
}

/// Writes a file of stacks: of a part of a recording, or of what the page shows at first. An error is a sentence for the
/// reader of the page.
pub(super) type WriteStacks =
    dyn Fn(StacksFile, Option<Window>, &mut dyn Write) -> Result<(), String> + Send + Sync;

/// The stacks of a file.
pub struct OpenedStacks {
    pub(super) options: HtmlOptions,
    pub(super) write: Arc<WriteStacks>,
}

impl OpenedStacks {
    /// The flame graph, recording or dump of the options. `write` writes files: see
    /// [`add_stacks_with_files`](super::Server::add_stacks_with_files).
    pub fn new(
        options: HtmlOptions,
        write: impl Fn(StacksFile, Option<Window>, &mut dyn Write) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { options, write: Arc::new(write) }
    }
}

impl fmt::Debug for OpenedStacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedStacks").field("options", &self.options).finish_non_exhaustive()
    }
}

type Open = dyn Fn(&Path) -> Result<OpenedStacks, String> + Send + Sync;

/// Opens the dumps and recordings of pages and processes. The owner of the server may know more of them than the server.
#[derive(Default)]
pub(super) struct Opening(Mutex<Option<Arc<Open>>>);

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opening")
    }
}

impl Opening {
    /// From now on this function opens files.
    pub(super) fn by(&self, open: Arc<Open>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
    }

    /// Opens a file. Without a function only dumps can be opened.
    pub(super) fn open(&self, path: &Path) -> Result<OpenedStacks, String> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        open.map_or_else(|| dump(path), |open| open(path))
    }
}

fn dump(path: &Path) -> Result<OpenedStacks, String> {
    let read = |path: &Path, system_names| -> Result<Dump, String> {
        let mut dump = dmd_analyze::read(path).map_err(|error| error.to_string())?;
        // Frames without symbols keep their library and offset.
        let _ = dump.symbolize(&SymbolOptions::new().system_names(system_names));
        Ok(dump)
    };
    let blocks = HeapBlocks::new(read(path, false)?, &ProgramOptions::new());
    let path = path.to_owned();
    Ok(OpenedStacks::new(HtmlOptions::new().heap_blocks(blocks), move |file, _, out| match file {
        StacksFile::Suggestions => write_suggestions(read(&path, false)?, out),
        StacksFile::Format(format) => {
            let is_pprof = format == StacksFormat::Pprof;
            let options = StacksOptions::new().types(is_pprof);
            let stacks = export::stacks(read(&path, is_pprof)?, &options).map_err(|error| error.to_string())?;
            let written = export::write(&stacks, format, &pprof::Options::new(), out);
            written.map(drop).map_err(|error| error.to_string())
        }
    }))
}

/// Writes what to report of a dump's unreported memory, as JSON for the page: for each type and function their bytes, and
/// the derive and the reporter that would report them.
///
/// # Errors
///
/// If the dump says neither what is reported nor what is alive, or if `out` fails.
pub fn write_suggestions(dump: Dump, out: &mut dyn Write) -> Result<(), String> {
    let all = Suggestions::new(dump, MOST).map_err(|error| error.to_string())?;
    let list = all.suggestions.iter().map(|suggestion| {
        json!({
            "bytes": super::answers::number(suggestion.sums.usable()), "blocks": super::answers::number(suggestion.sums.num),
            "type": suggestion.type_name, "function": suggestion.function, "place": suggestion.place,
            "crate": suggestion.module, "advice": suggestion.advice(),
        })
    });
    let text = json!({ "suggestions": list.collect::<Vec<_>>(), "more": all.more });
    out.write_all(text.to_string().as_bytes()).map_err(|error| error.to_string())
}
