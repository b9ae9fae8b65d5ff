//! Dumps and recordings that the page opens: the data that it shows, and the functions that write files of them.

use core::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use dmd_analyze::Dump;
use dmd_analyze::Suggestions;
use dmd_analyze::program::{HeapOverview, Workspace};
use dmd_analyze::symbolize::SymbolOptions;
use memory_export::dmd::{self, ProfileOptions, RecordingWindow};
use memory_export::{ProfileFormat, pprof};
use serde_json::json;

use crate::{HeapFacts, HtmlOptions};

/// A dump has at most this many suggestions.
const MOST: usize = 200;

/// Writes stacks in a format: for a part of a recording, or for the part that the page shows at first. An error is a
/// sentence for the reader of the page.
pub(super) type WriteStacks =
    dyn Fn(ProfileFormat, Option<RecordingWindow>, &mut dyn Write) -> Result<(), String> + Send + Sync;

/// Reads the blocks that the page shows at first. An error is a sentence for the reader of the page.
pub(super) type ReadBlocks = dyn Fn() -> Result<Dump, String> + Send + Sync;

/// The stacks of a file.
pub struct OpenedStacks {
    pub(super) options: HtmlOptions,
    pub(super) write: Option<Arc<WriteStacks>>,
    pub(super) read: Option<Arc<ReadBlocks>>,
}

impl OpenedStacks {
    /// Creates the stacks that the page shows: the flame graph, recording or dump in the options.
    pub fn new(options: HtmlOptions) -> Self {
        Self { options, write: None, read: None }
    }

    /// Offers files for other tools on the page. `write` writes a file when a page requests the file. The server writes
    /// one file at a time. Without a window, `write` writes the part that the page shows at first. The page shows an
    /// error of `write` to its reader.
    #[must_use]
    pub fn files(
        self,
        write: impl Fn(ProfileFormat, Option<RecordingWindow>, &mut dyn Write) -> Result<(), String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { write: Some(Arc::new(write)), ..self }
    }

    /// Lets the page suggest reporters for the blocks, and compare the blocks with other stacks. `read` reads the
    /// blocks when a page requests suggestions or a comparison.
    #[must_use]
    pub fn blocks(self, read: impl Fn() -> Result<Dump, String> + Send + Sync + 'static) -> Self {
        Self { read: Some(Arc::new(read)), ..self }
    }
}

impl fmt::Debug for OpenedStacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedStacks").field("options", &self.options).finish_non_exhaustive()
    }
}

type OpenFunction = dyn Fn(&Path) -> Result<OpenedStacks, String> + Send + Sync;

/// Opens the dumps and recordings of pages and processes. The owner of the server may set a function that opens more
/// kinds than the server itself.
#[derive(Default)]
pub(super) struct StackOpening(Mutex<Option<Arc<OpenFunction>>>);

impl fmt::Debug for StackOpening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opening")
    }
}

impl StackOpening {
    /// Sets the function that opens files.
    pub(super) fn by(&self, open: Arc<OpenFunction>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
    }

    /// Opens a file. Without a function, only dumps can be opened.
    pub(super) fn open(&self, path: &Path) -> Result<OpenedStacks, String> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        open.map_or_else(|| dump(path), |open| open(path))
    }
}

fn dump(path: &Path) -> Result<OpenedStacks, String> {
    let read = |path: &Path, system_names| -> Result<Dump, String> {
        let mut dump = dmd_analyze::read(path).map_err(|error| error.to_string())?;
        // A frame without symbols keeps its library and offset.
        let _ = dump.symbolize(&SymbolOptions::new().system_names(system_names));
        Ok(dump)
    };
    let dump_of_page = read(path, false)?;
    let facts = HeapFacts::from_dump(&dump_of_page, &HeapOverview::new(&dump_of_page, None));
    let options = HtmlOptions::new().dump(dump_of_page).heap_facts(facts);
    let (path, again) = (path.to_owned(), path.to_owned());
    let write = move |format: ProfileFormat, _: Option<RecordingWindow>, out: &mut dyn Write| {
        let is_pprof = format == ProfileFormat::Pprof;
        let options = ProfileOptions::new().types(is_pprof);
        let stacks = dmd::stacks(read(&path, is_pprof)?, &options).map_err(|error| error.to_string())?;
        let written = format.write(&stacks, &pprof::PprofOptions::new(), out);
        written.map(drop).map_err(|error| error.to_string())
    };
    let opened = OpenedStacks::new(options);
    Ok(opened.files(write).blocks(move || read(&again, false)))
}

/// Writes suggestions for a dump's unreported memory, as JSON for the page. A suggestion contains the bytes of a type
/// and function, and the derive and the reporter that would report them.
pub(super) fn write_suggestions(dump: Dump, out: &mut dyn Write) -> Result<(), String> {
    let workspace = Workspace::from_frames(dump.stacks().flatten());
    let all = Suggestions::new(dump, MOST).map_err(|error| error.to_string())?;
    let list = all.suggestions.iter().map(|suggestion| {
        let site = suggestion.largest();
        json!({
            "bytes": super::answers::number(suggestion.sums.usable()), "blocks": super::answers::number(suggestion.sums.num),
            "type": site.type_name, "function": site.function,
            "place": workspace.short(&site.place),
            "crate": site.module, "advice": suggestion.advice(),
        })
    });
    let text = json!({ "suggestions": list.collect::<Vec<_>>(), "more": all.more });
    out.write_all(text.to_string().as_bytes()).map_err(|error| error.to_string())
}
