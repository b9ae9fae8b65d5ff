//! The opened sources, their cached tables, and pages of these tables.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use about_memory::session::{Session, SessionOptions};

use super::super::dump_limits::DumpLimits;
use super::argument::CheckedArguments;
use super::control::CallControl;
use super::page::{self, DEFAULT_BYTES, DEFAULT_ROWS, MAX_BYTES, PageStart, ToolAnswer};
use super::place::AllowedPlaces;
use super::source::OpenedSource;
use super::table::{AmountTable, RowChoice, TableCache};

/// At most this many sources are open.
const MAX_OPEN: usize = 16;

/// The tools with their state: opened sources and cached tables.
pub(super) struct MemoryTools {
    pub(super) places: AllowedPlaces,
    pub(super) limits: DumpLimits,
    pub(super) session: Session,
    pub(super) cache: TableCache,
    opened: Mutex<OpenedSources>,
}

#[derive(Default)]
struct OpenedSources {
    last: u64,
    all: BTreeMap<String, Arc<OpenedSource>>,
}

impl OpenedSources {
    fn check_room(&self) -> Result<(), String> {
        match self.all.len() {
            MAX_OPEN.. => Err(format!("{MAX_OPEN} sources are open; close one with `close` first")),
            _ => Ok(()),
        }
    }
}

impl MemoryTools {
    pub(super) fn new(places: AllowedPlaces, limits: DumpLimits) -> Self {
        Self {
            places,
            limits,
            session: Session::new(SessionOptions::new()),
            cache: TableCache::default(),
            opened: Mutex::default(),
        }
    }

    fn opened(&self) -> MutexGuard<'_, OpenedSources> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if no further source can be opened.
    pub(super) fn check_room(&self) -> Result<(), String> {
        self.opened().check_room()
    }

    /// Keeps a source under a new handle.
    pub(super) fn keep(
        &self,
        make: impl FnOnce(String) -> OpenedSource,
    ) -> Result<Arc<OpenedSource>, String> {
        let mut opened = self.opened();
        // Another call may have opened a source in the meantime: a cancelled call continues on its thread.
        opened.check_room()?;
        opened.last += 1;
        let handle = format!("h{}", opened.last);
        let source = Arc::new(make(handle.clone()));
        opened.all.insert(handle, Arc::clone(&source));
        Ok(source)
    }

    pub(super) fn find(&self, handle: &str) -> Result<Arc<OpenedSource>, String> {
        let opened = self.opened();
        opened.all.get(handle).cloned().ok_or_else(|| {
            let open: Vec<&str> = opened.all.keys().map(String::as_str).collect();
            let handle = page::quoted(handle, 32);
            match open.is_empty() {
                true => format!("no source has the handle {handle}: open a file with `open` first"),
                false => format!("no source has the handle {handle}; open handles are: {}", open.join(", ")),
            }
        })
    }

    /// Closes a source. Returns the number of sources that stay open.
    pub(super) fn close(&self, handle: &str) -> Result<usize, String> {
        self.find(handle)?;
        self.cache.forget(handle);
        let mut opened = self.opened();
        opened.all.remove(handle);
        Ok(opened.all.len())
    }

    /// The table of a source by a key.
    pub(super) fn table(
        &self,
        source: &OpenedSource,
        group: &str,
        control: &CallControl,
    ) -> Result<Arc<AmountTable>, String> {
        self.cache.table(&format!("{}/{group}", source.handle), || source.data.table(group, control))
    }

    /// Answers with a page of a table. `key` identifies the table in the cache.
    pub(super) fn page(
        &self,
        key: &str,
        table: &Arc<AmountTable>,
        arguments: &CheckedArguments<'_>,
        heading: &str,
    ) -> Result<ToolAnswer, String> {
        let choice = choice(arguments);
        let start = PageStart::new(&(key, &choice), arguments.text("cursor"))?;
        let view = self.cache.view(key, table, &choice);
        let handle = key.split('/').next().unwrap_or_default();
        Ok(page::page(handle, &view, &start, limit(arguments, DEFAULT_ROWS), max_bytes(arguments), heading))
    }
}

fn choice(arguments: &CheckedArguments<'_>) -> RowChoice {
    let default = RowChoice::default();
    RowChoice {
        filter: arguments.text("filter").unwrap_or_default().to_owned(),
        sort: arguments.text("sort").map_or(default.sort, str::to_owned),
        is_reversed: arguments.flag("reverse"),
    }
}

pub(super) fn limit(arguments: &CheckedArguments<'_>, default: u64) -> usize {
    usize::try_from(arguments.number("limit").unwrap_or(default)).unwrap_or(usize::MAX)
}

pub(super) fn max_bytes(arguments: &CheckedArguments<'_>) -> usize {
    let bytes = arguments.number("max_bytes").unwrap_or(DEFAULT_BYTES as u64);
    usize::try_from(bytes).unwrap_or(MAX_BYTES)
}
