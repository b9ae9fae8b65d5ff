//! The dumps and recordings that the page shows, by number, as data for the page.

use core::fmt;
use std::net::TcpStream;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dmd_analyze::program::{HeapChange, ProgramOptions};
use dmd_analyze::recording::Moment;
use memory_export::ProfileFormat;
use memory_export::dmd::RecordingWindow;
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;

use super::answers::has_gone;
use super::downloads::{PendingDownloads, stacks_format};
use super::opening::{OpenedStacks, ReadBlocks, StackOpening, WriteStacks, write_suggestions};
use super::reports::now;
use super::served_list::{ServedEntry, ServedList};
use crate::HtmlOptions;
use crate::http::{HttpRefusal, HttpResponse};
use crate::session::Session;

#[derive(Clone)]
pub(super) struct ServedStacks {
    pub(super) title: String,
    pub(super) data: Arc<Vec<u8>>,
    write: Option<Arc<WriteStacks>>,
    read: Option<Arc<ReadBlocks>>,
    /// Whether the server was started with these stacks.
    is_given: bool,
    /// The time since 1970 at which the server received the stacks.
    time: Duration,
    /// The folder of the file that `write` and `read` open. It is removed with the last clone.
    _folder: Option<Arc<TempDir>>,
}

impl fmt::Debug for ServedStacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stacks").field("title", &self.title).finish_non_exhaustive()
    }
}

impl ServedStacks {
    /// Makes an entry of stacks. `is_given` is true if the server was started with them.
    pub(super) fn new(title: &str, opened: OpenedStacks, is_given: bool) -> Self {
        let data = Arc::new(crate::html::stacks_payload(&opened.options));
        let (title, write, read) = (title.to_owned(), opened.write, opened.read);
        Self { title, data, write, read, is_given, time: now(), _folder: None }
    }

    /// Makes an entry of the stacks in a file that a page sent or requested from a process. The file's folder is
    /// removed with the stacks.
    pub(super) fn from_file(
        title: &str,
        path: &Path,
        folder: impl Into<Arc<TempDir>>,
        opening: &StackOpening,
    ) -> Result<Self, HttpRefusal> {
        let opened =
            opening.open(path).map_err(|error| HttpRefusal::new(409, with_title(title, path, &error)))?;
        Ok(Self { _folder: Some(folder.into()), ..Self::new(title, opened, false) })
    }

    /// Returns the time at which a page requested the stacks; `None` if the server was started with them.
    pub(super) fn made_at(&self) -> Option<Duration> {
        (!self.is_given).then_some(self.time)
    }

    /// Whether a page can compare the stacks, and request suggestions.
    pub(super) fn has_blocks(&self) -> bool {
        self.read.is_some()
    }

    /// Whether a page can get the stacks in the formats of other tools.
    pub(super) fn has_files(&self) -> bool {
        self.write.is_some()
    }
}

/// Replaces the path in an error by the title, because the reader of the page does not know the path.
fn with_title(title: &str, path: &Path, error: &str) -> String {
    let name = path.file_name().map(|name| name.display());
    let after_path = error.strip_prefix(&path.display().to_string());
    let rest = after_path.or_else(|| error.strip_prefix(&name?.to_string()));
    rest.map_or_else(|| error.to_owned(), |rest| format!("{title}{rest}"))
}

pub(super) type AllStacks = ServedList<ServedStacks>;

impl ServedEntry for ServedStacks {
    const LIST: &'static str = "stacks";
    const UNKNOWN: &'static str = "no stacks have this id";
    const MOST: NonZeroUsize = NonZeroUsize::new(20).expect("20 is not 0");

    fn is_given(&self) -> bool {
        self.is_given
    }
}

/// The format of a file for another tool, and the part of a recording that the page shows, in nanoseconds since the
/// start of the recording. Without `from`, the part starts with the recording. Without both, the file contains the part
/// that the page shows at first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StackExport {
    #[serde(deserialize_with = "stacks_format")]
    format: ProfileFormat,
    #[serde(default)]
    from: Option<u64>,
    #[serde(default)]
    to: Option<u64>,
}

impl StackExport {
    pub(super) fn run(
        self,
        id: u32,
        stacks: &AllStacks,
        downloads: &PendingDownloads,
        session: &Session,
        stream: &TcpStream,
    ) -> Result<HttpResponse, HttpRefusal> {
        let stacks = stacks.get(id)?;
        let write = stacks.write.as_ref().ok_or(HttpRefusal::new(409, "these stacks cannot be exported"))?;
        if self.from.is_some() && self.to.is_none() {
            return Err(HttpRefusal::new(400, "a part of a recording needs an end"));
        }
        let after = |nanoseconds| Moment::After(Duration::from_nanos(nanoseconds));
        let window = self.to.map(|to| RecordingWindow { from: self.from.map(after), to: after(to) });
        let name = format!("stacks-{id}.{}", self.format.extension());
        downloads.answer(name, session, stream, |out| write(self.format, window, out))
    }
}

/// Returns the suggestions for the unreported blocks of some stacks.
pub(super) fn suggestions(
    id: u32,
    stacks: &AllStacks,
    downloads: &PendingDownloads,
    session: &Session,
    stream: &TcpStream,
) -> Result<HttpResponse, HttpRefusal> {
    let stacks = stacks.get(id)?;
    let read = stacks.read.as_ref().ok_or(HttpRefusal::new(409, "these stacks have no suggestions"))?;
    let name = format!("suggestions-{id}.json");
    downloads.answer(name, session, stream, |out| write_suggestions(read()?, out))
}

/// Two entries of stacks. The second entry is the later one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareStacks {
    before: u32,
    after: u32,
}

impl CompareStacks {
    /// Adds the difference, which the page shows like other stacks.
    pub(super) fn run(
        &self,
        stacks: &AllStacks,
        downloads: &PendingDownloads,
        stream: &TcpStream,
    ) -> Result<HttpResponse, HttpRefusal> {
        let (before, after) = (stacks.get(self.before)?, stacks.get(self.after)?);
        let _one = downloads.one()?;
        let blocks = |of: &ServedStacks| {
            let read =
                of.read.as_ref().ok_or(HttpRefusal::new(409, format!("{} cannot be compared", of.title)))?;
            read().map_err(|error| HttpRefusal::new(409, error))
        };
        let first = blocks(&before)?;
        if has_gone(stream) {
            return Err(HttpRefusal::gone());
        }
        let change = HeapChange::new(first, blocks(&after)?, &ProgramOptions::new())
            .map_err(|error| HttpRefusal::new(409, error.to_string()))?;
        let title = format!("{} since {}", after.title, before.title);
        let options = HtmlOptions::new().heap_change(change, [before.title, after.title]);
        let id = stacks.add(ServedStacks::new(&title, OpenedStacks::new(options), false));
        Ok(HttpResponse::json(&json!({ "stacks": id, "title": title })))
    }
}
