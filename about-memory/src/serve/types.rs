//! Snapshots whose nodes are the typed blocks of a program, and their tables.

use core::fmt;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::json;

use super::answers;
use crate::http::{HttpRefusal, HttpResponse};
use crate::session::{Session, SessionError, SnapshotId};

/// The tables of a typed heap, which the page shows beside its snapshot.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct TypeTables {
    /// Sentences about the whole heap, such as its bytes, and the share that has a type.
    pub summary: String,
    /// The tables, such as the blocks by type, by field, and unused memory.
    pub tables: Vec<TypeTable>,
}

impl TypeTables {
    /// Creates tables with sentences above them.
    pub fn new(summary: impl Into<String>, tables: Vec<TypeTable>) -> Self {
        Self { summary: summary.into(), tables }
    }
}

/// The things that the rows of a table count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CountKind {
    /// Blocks, and their bytes.
    #[default]
    Blocks,
    /// Pointers. They have no bytes of their own.
    Pointers,
}

/// A table of a typed heap.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct TypeTable {
    /// The table's name in addresses.
    pub name: String,
    /// The table's title.
    pub title: String,
    /// The things that the rows count.
    pub counts: CountKind,
    /// The bytes that are 100 %.
    pub whole: u64,
    /// The rows, in order.
    pub rows: Vec<TypeTableRow>,
    /// The number of rows that the table does not contain.
    pub left_out: usize,
}

impl TypeTable {
    /// Creates a table with the first `most` of these rows.
    pub fn new(name: &str, title: &str, whole: u64, mut rows: Vec<TypeTableRow>, most: usize) -> Self {
        let left_out = rows.len().saturating_sub(most);
        rows.truncate(most);
        let (name, title) = (name.to_owned(), title.to_owned());
        Self { name, title, counts: CountKind::Blocks, whole, rows, left_out }
    }

    /// Creates a table with the first `most` of these rows. In these rows, `blocks` contains a number of pointers.
    pub fn by_pointers(name: &str, title: &str, rows: Vec<TypeTableRow>, most: usize) -> Self {
        Self { counts: CountKind::Pointers, ..Self::new(name, title, 0, rows, most) }
    }
}

/// A row: some blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(clippy::exhaustive_structs, reason = "every row has exactly these fields")]
pub struct TypeTableRow {
    /// The bytes of the blocks. In some tables, the bytes that the blocks keep alive, or the unused bytes.
    pub bytes: u64,
    /// The number of the blocks; in a table by pointers, the number of the pointers.
    pub blocks: u64,
    /// The name of the blocks or values.
    pub text: String,
    /// The type by which the snapshot groups the blocks; `None` if they do not have exactly one type.
    pub of_type: Option<String>,
}

/// Saves the typed heap of a process as a heap snapshot, and returns its tables. An error is a sentence for the reader
/// of the page.
pub(super) type SaveTypes = dyn Fn(u32, &Path) -> Result<TypeTables, String> + Send + Sync;

/// The tables by snapshot, and the function that makes them.
#[derive(Default)]
pub(super) struct AllTypes {
    save: Mutex<Option<Arc<SaveTypes>>>,
    all: Mutex<BTreeMap<SnapshotId, Arc<Mutex<Option<TypeTables>>>>>,
}

impl fmt::Debug for AllTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllTypes").field("all", &self.all).finish_non_exhaustive()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AllTypes {
    /// Sets the function that saves the types of a process.
    pub(super) fn save_by(&self, save: Arc<SaveTypes>) {
        *lock(&self.save) = Some(save);
    }

    /// Whether the page can request the types of a process.
    pub(super) fn are_possible(&self) -> bool {
        lock(&self.save).is_some()
    }

    /// Takes the typed heap of a process as a snapshot of the session, on another thread.
    pub(super) fn take(&self, pid: u32, title: &str, session: &Session) -> Result<SnapshotId, HttpRefusal> {
        let save = lock(&self.save).clone();
        let save = save.ok_or(HttpRefusal::new(404, "this server cannot read types"))?;
        self.add(title, session, move |path| save(pid, path)).map_err(answers::refusal)
    }

    /// Adds a snapshot with types. `save` saves it on another thread.
    pub(super) fn add(
        &self,
        title: &str,
        session: &Session,
        save: impl FnOnce(&Path) -> Result<TypeTables, String> + Send + 'static,
    ) -> Result<SnapshotId, SessionError> {
        let tables = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&tables);
        let taken = session.take(title, move |path| {
            *lock(&filled) = Some(save(path)?);
            Ok(())
        });
        let id = taken?;
        let mut all = lock(&self.all);
        // Drops the tables of removed snapshots.
        all.retain(|id, _| session.snapshots().iter().any(|info| info.id == *id));
        all.insert(id, tables);
        Ok(id)
    }

    /// Returns the snapshots that have tables.
    pub(super) fn list(&self) -> Vec<u32> {
        lock(&self.all).iter().filter(|(_, tables)| lock(tables).is_some()).map(|(id, _)| id.0).collect()
    }

    pub(super) fn get(&self, id: SnapshotId) -> Result<HttpResponse, HttpRefusal> {
        let tables = lock(&self.all).get(&id).cloned();
        let tables = tables.and_then(|tables| lock(&tables).clone());
        let tables = tables.ok_or(HttpRefusal::new(404, "this snapshot has no tables of types"))?;
        Ok(HttpResponse::json(&json!(tables)))
    }
}
