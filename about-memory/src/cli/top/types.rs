//! The screen of typed heaps: tables by type and by field, unused memory, and async tasks. A row of a type leads to the
//! type's blocks on the screen of snapshots.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use about_memory::serve::{CountKind, TypeTable, TypeTableRow, TypeTables};
use about_memory::session::{Session, SnapshotId, SnapshotInfo};
use dmd_analyze::program::bytes;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::super::line::line as text_line;
use super::cursor::{RowCursor, count, head, share};

/// The blocks of a type, for the screen of snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OfType {
    pub(super) snapshot: SnapshotId,
    pub(super) name: String,
}

/// A typed heap: a snapshot of the session, and the tables of the heap as soon as they are made.
struct TypedHeapEntry {
    snapshot: SnapshotId,
    tables: Arc<Mutex<Option<TypeTables>>>,
}

#[derive(Default)]
pub(super) struct TypeScreen {
    heaps: Vec<TypedHeapEntry>,
    /// The index of the shown heap in the list.
    at: usize,
    table: usize,
    cursor: RowCursor,
}

impl TypeScreen {
    pub(super) const KEYS: &'static str =
        "Tab table, Enter blocks of the type, [ ] heap; in Processes: t reads a heap";

    /// Reads a typed heap on a thread of the session. `save` saves the heap's snapshot and returns the heap's tables.
    pub(super) fn take(
        &mut self,
        session: &Session,
        title: &str,
        save: impl FnOnce(&Path) -> Result<TypeTables, String> + Send + 'static,
    ) -> Result<(), String> {
        let tables = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&tables);
        let taken = session.take(title, move |path| {
            let made = save(path)?;
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
            Ok(())
        });
        let snapshot = taken.map_err(|error| error.to_string())?;
        self.heaps.push(TypedHeapEntry { snapshot, tables });
        self.show(self.heaps.len() - 1);
        Ok(())
    }

    fn show(&mut self, at: usize) {
        self.at = at.min(self.heaps.len().saturating_sub(1));
        (self.table, self.cursor) = (0, RowCursor::default());
    }

    /// Calls a function with the shown heap and its tables. `None` if the tables do not exist yet.
    fn with<T>(&self, body: impl FnOnce(&TypedHeapEntry, &TypeTables) -> T) -> Option<T> {
        let heap = self.heaps.get(self.at)?;
        let tables = heap.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.as_ref().map(|tables| body(heap, tables))
    }

    pub(super) fn press(&mut self, key: KeyCode) -> Result<Option<OfType>, String> {
        let counts = |_: &TypedHeapEntry, tables: &TypeTables| {
            (tables.tables.len(), tables.tables[self.table].rows.len())
        };
        let (tables, rows) = self.with(counts).unwrap_or_default();
        if self.cursor.press(key, rows) {
            return Ok(None);
        }
        match key {
            KeyCode::Tab => {
                self.table = (self.table + 1) % tables.max(1);
                self.cursor = RowCursor::default();
            }
            KeyCode::Char('[') => self.show(self.at.saturating_sub(1)),
            KeyCode::Char(']') => self.show(self.at + 1),
            KeyCode::Enter => {
                let row = |heap: &TypedHeapEntry, tables: &TypeTables| {
                    let row = tables.tables[self.table].rows.get(self.cursor.at)?;
                    Some(OfType { snapshot: heap.snapshot, name: row.of_type.clone()? })
                };
                let of_type = self.with(row).flatten();
                return of_type.map(Some).ok_or_else(|| "select a row with a type".to_owned());
            }
            _ => {}
        }
        Ok(None)
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, snapshots: &[SnapshotInfo]) {
        let [titles, heads, rows, summary] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(2),
        ])
        .areas(area);
        let Some(heap) = self.heaps.get(self.at) else {
            return frame.render_widget(
                head("No types: press t on a process that DMD records, or open a core file"),
                titles,
            );
        };
        let info = snapshots.iter().find(|info| info.id == heap.snapshot);
        let title = info.map_or_else(|| "this heap was removed".to_owned(), |info| info.title.clone());
        let place = format!("{} of {}", self.at + 1, self.heaps.len());
        let title = format!("{title} ({place})");
        let tables = heap.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tables) = &*tables else {
            frame.render_widget(head(title), titles);
            let reason = info.and_then(|info| info.state.error());
            let text = reason.unwrap_or("reading the heap …");
            return frame.render_widget(text_line(text), heads);
        };
        let table = &tables.tables[self.table];
        frame.render_widget(head(format!("{title}: {}", table.title)), titles);
        let titles = match table.counts {
            CountKind::Pointers => format!("{:>10} WHAT", "POINTERS"),
            _ => format!("{:>12} {:>7} {:>10} WHAT", "BYTES", "", "BLOCKS"),
        };
        frame.render_widget(head(titles), heads);
        let window = self.cursor.window(rows.height, table.rows.len());
        let lines: Vec<_> = table.rows[window].iter().map(|row| line(row, table)).collect();
        self.cursor.draw(frame, rows, lines);
        let text = ratatui::widgets::Paragraph::new(text_line(&tables.summary));
        frame.render_widget(text.wrap(ratatui::widgets::Wrap { trim: true }), summary);
    }
}

fn line(row: &TypeTableRow, table: &TypeTable) -> Line<'static> {
    let (amount, part) = (bytes(row.bytes.into()), share(row.bytes.into(), table.whole.into()));
    let (blocks, text) = (count(row.blocks.into()), &row.text);
    text_line(&match table.counts {
        CountKind::Pointers => format!("{blocks:>10} {text}"),
        _ => format!("{amount:>12} {part:>7} {blocks:>10} {text}"),
    })
}
