//! Tables of amounts: rows with bytes and counts, their order, and the cache of tables that calls share.

use core::hash::{Hash as _, Hasher as _};
use std::collections::{BTreeMap, VecDeque};
use std::hash::DefaultHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The cache keeps at most this many tables.
const MAX_TABLES: usize = 32;
/// The cache keeps at most this many orders of rows.
const MAX_VIEWS: usize = 8;

/// A name in a table has at most this many bytes of the original. Answers cut names further.
const MAX_NAME: usize = 240;
/// Longer names with equal starts of this size and equal lengths count as one name.
const MAX_HASHED: usize = 16 << 10;
/// A row whose id is longer has no id, because answers repeat whole ids.
const MAX_ROW_ID: usize = 400;

/// Cuts a name before a table keeps it: a file may have a name of megabytes in each of many rows. A cut name ends with a
/// hash of the whole name, so that two names stay two.
pub(super) fn short(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    (name.len(), &name.as_bytes()[..name.len().min(MAX_HASHED)]).hash(&mut hasher);
    let end = (0..=MAX_NAME).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…{:016x}", &name[..end], hasher.finish())
}

/// The id of a row whose id is a text of a file. Empty if answers cannot repeat the text as it is.
pub(super) fn row_id(text: &str) -> String {
    if text.len() <= MAX_ROW_ID && about_memory::escape(text) == text {
        text.to_owned()
    } else {
        String::new()
    }
}

/// A row: its amounts, and its names. All texts come from the measured program.
#[derive(Clone, Debug, Default)]
pub(super) struct AmountRow {
    /// The text by which the tools `node`, `why` and `source` find the row again. Empty if they cannot.
    pub(super) id: String,
    pub(super) name: String,
    /// The source line. Empty if it is unknown.
    pub(super) place: String,
    pub(super) bytes: i128,
    pub(super) count: i128,
    /// Further amounts, with the names of their fields.
    pub(super) more: Vec<(&'static str, i128)>,
}

/// The rows of a table. A large table makes a row only when an answer shows it.
pub(super) trait RowSource: Send + Sync {
    fn len(&self) -> usize;
    /// The bytes and the count of a row.
    fn amounts(&self, index: usize) -> (i128, i128);
    fn row(&self, index: usize) -> AmountRow;
    /// Whether a name of the row contains the text.
    fn contains(&self, index: usize, text: &str) -> bool;
}

impl RowSource for Vec<AmountRow> {
    fn len(&self) -> usize {
        self.len()
    }

    fn amounts(&self, index: usize) -> (i128, i128) {
        (self[index].bytes, self[index].count)
    }

    fn row(&self, index: usize) -> AmountRow {
        self[index].clone()
    }

    fn contains(&self, index: usize, text: &str) -> bool {
        self[index].name.contains(text) || self[index].place.contains(text)
    }
}

/// The sums of some rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowSums {
    pub(super) rows: usize,
    pub(super) bytes: i128,
    pub(super) count: i128,
}

impl RowSums {
    fn minus(self, other: Self) -> Self {
        Self {
            rows: self.rows - other.rows,
            bytes: self.bytes.saturating_sub(other.bytes),
            count: self.count.saturating_sub(other.count),
        }
    }

    fn add(&mut self, (bytes, count): (i128, i128)) {
        self.rows += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.count = self.count.saturating_add(count);
    }
}

/// A table of amounts.
pub(super) struct AmountTable {
    /// The key of the rows, such as `site`.
    pub(super) group: String,
    /// The meaning of the rows' bytes, such as `usable bytes of live blocks`.
    pub(super) bytes: &'static str,
    /// The things that the rows count, such as `blocks`.
    pub(super) counts: &'static str,
    /// Whether a byte may count in several rows. The sums of such rows are not the sum of the heap.
    pub(super) overlaps: bool,
    /// The bytes that are 100 % in the text. `None` for changes, which have no shares.
    pub(super) whole: Option<i128>,
    pub(super) rows: Box<dyn RowSource>,
    /// Facts about the table, for the reader of an answer.
    pub(super) notes: Vec<String>,
}

impl AmountTable {
    pub(super) fn new(
        group: impl Into<String>,
        bytes: &'static str,
        counts: &'static str,
        rows: Vec<AmountRow>,
    ) -> Self {
        let (group, rows) = (group.into(), Box::new(rows));
        Self { group, bytes, counts, overlaps: false, whole: None, rows, notes: Vec::new() }
    }

    pub(super) fn overlapping(self) -> Self {
        Self { overlaps: true, ..self }
    }

    /// Shows the rows as shares of these bytes.
    pub(super) fn share_of(self, whole: i128) -> Self {
        Self { whole: Some(whole), ..self }
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    pub(super) fn sums(&self) -> RowSums {
        let mut sums = RowSums::default();
        (0..self.rows.len()).for_each(|index| sums.add(self.rows.amounts(index)));
        sums
    }
}

/// The order and the choice of rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RowChoice {
    pub(super) filter: String,
    /// One of [`RowChoice::SORTS`].
    pub(super) sort: String,
    pub(super) is_reversed: bool,
}

impl Default for RowChoice {
    fn default() -> Self {
        Self { filter: String::new(), sort: Self::SORTS[0].to_owned(), is_reversed: false }
    }
}

impl RowChoice {
    pub(super) const SORTS: &'static [&'static str] = &["bytes", "count", "name"];
}

/// The chosen rows of a table, in order.
pub(super) struct TableView {
    pub(super) table: Arc<AmountTable>,
    order: Vec<u32>,
    /// The sums before every [`STEP`]th row, so that the sums of a page do not read all rows.
    marks: Vec<RowSums>,
    pub(super) total: RowSums,
}

/// The number of rows between two marks.
const STEP: usize = 1024;

impl TableView {
    pub(super) fn new(table: &Arc<AmountTable>, choice: &RowChoice) -> Self {
        let rows = &table.rows;
        let is_chosen = |index: &usize| choice.filter.is_empty() || rows.contains(*index, &choice.filter);
        // No table has 2^32 rows: nodes, stacks and reports have indices of 32 bits.
        let mut order: Vec<u32> = (0..rows.len()).filter(is_chosen).map(|index| index as u32).collect();
        match &*choice.sort {
            "count" => order.sort_by_cached_key(|index| core::cmp::Reverse(rows.amounts(*index as usize).1)),
            // Names go from A to Z, and amounts from the largest to the smallest.
            "name" => order.sort_by_cached_key(|index| rows.row(*index as usize).name),
            _ => order.sort_by_cached_key(|index| core::cmp::Reverse(rows.amounts(*index as usize).0)),
        }
        if choice.is_reversed {
            order.reverse();
        }
        let mut total = RowSums::default();
        let mut marks = Vec::new();
        for (place, index) in order.iter().enumerate() {
            if place % STEP == 0 {
                marks.push(total);
            }
            total.add(rows.amounts(*index as usize));
        }
        Self { table: Arc::clone(table), order, marks, total }
    }

    /// The number of chosen rows.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn row(&self, place: usize) -> AmountRow {
        self.table.rows.row(self.order[place] as usize)
    }

    /// The sums of the rows before a place.
    fn sums_before(&self, place: usize) -> RowSums {
        let Some(mark) = self.marks.get(place / STEP) else { return self.total };
        let mut sums = *mark;
        let first = place / STEP * STEP;
        self.order[first..place].iter().for_each(|index| sums.add(self.table.rows.amounts(*index as usize)));
        sums
    }

    /// The sums of the rows at these places.
    pub(super) fn sums(&self, places: core::ops::Range<usize>) -> RowSums {
        self.sums_before(places.end).minus(self.sums_before(places.start))
    }
}

/// The largest number of rows that are compared by name.
const MAX_COMPARED: usize = 1 << 20;

/// The changes between the rows of two tables with equal names and places.
pub(super) fn changes_by_name(before: &AmountTable, after: &AmountTable) -> Result<AmountTable, String> {
    if before.rows.len().max(after.rows.len()) > MAX_COMPARED {
        return Err(format!("more than {MAX_COMPARED} rows cannot be compared; use another group"));
    }
    let mut sums: BTreeMap<(String, String), [(i128, i128); 2]> = BTreeMap::new();
    for (time, table) in [before, after].into_iter().enumerate() {
        for index in 0..table.rows.len() {
            let row = table.rows.row(index);
            let sum = &mut sums.entry((row.name, row.place)).or_default()[time];
            sum.0 += row.bytes;
            sum.1 += row.count;
        }
    }
    let rows = sums.into_iter().map(|((name, place), [first, second])| AmountRow {
        id: String::new(),
        name,
        place,
        bytes: second.0 - first.0,
        count: second.1 - first.1,
        more: vec![("before", first.0), ("after", second.0)],
    });
    let rows = rows.filter(|row| row.bytes != 0 || row.count != 0).collect();
    let table = AmountTable::new(after.group.clone(), after.bytes, after.counts, rows);
    let table = if after.overlaps { table.overlapping() } else { table };
    Ok(table.note("Bytes and counts are changes: after minus before."))
}

/// The latest tables and views. Keys start with the handles of their sources.
#[derive(Default)]
pub(super) struct TableCache {
    tables: Mutex<VecDeque<(String, Arc<AmountTable>)>>,
    views: Mutex<VecDeque<(String, RowChoice, Arc<TableView>)>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TableCache {
    /// Returns the table with this key. `make` makes it without a lock, if the cache does not have it.
    pub(super) fn table(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<AmountTable, String>,
    ) -> Result<Arc<AmountTable>, String> {
        if let Some((_, table)) = lock(&self.tables).iter().find(|(known, _)| known == key) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(make()?);
        let mut tables = lock(&self.tables);
        if tables.len() >= MAX_TABLES {
            tables.pop_front();
        }
        tables.push_back((key.to_owned(), Arc::clone(&table)));
        Ok(table)
    }

    /// Returns the chosen rows of the table with this key.
    pub(super) fn view(&self, key: &str, table: &Arc<AmountTable>, choice: &RowChoice) -> Arc<TableView> {
        let is_same = |(known, of, _): &&(String, RowChoice, Arc<TableView>)| known == key && of == choice;
        if let Some((_, _, view)) = lock(&self.views).iter().find(is_same) {
            return Arc::clone(view);
        }
        let view = Arc::new(TableView::new(table, choice));
        let mut views = lock(&self.views);
        if views.len() >= MAX_VIEWS {
            views.pop_front();
        }
        views.push_back((key.to_owned(), choice.clone(), Arc::clone(&view)));
        view
    }

    /// Drops the tables of a closed source.
    pub(super) fn forget(&self, handle: &str) {
        let is_of =
            |key: &str| key.split('/').next().is_some_and(|of| of.split('-').any(|part| part == handle));
        lock(&self.tables).retain(|(key, _)| !is_of(key));
        lock(&self.views).retain(|(key, _, _)| !is_of(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_stay_different() {
        assert_eq!(short("alloc::vec::Vec<u8>"), "alloc::vec::Vec<u8>");
        let [first, second] = ["a", "b"].map(|end| format!("{}{end}", "é".repeat(1000)));
        assert!(short(&first).len() < 300 && short(&first).starts_with("éé"));
        assert_ne!(short(&first), short(&second));
        assert_eq!(short(&first), short(&first.clone()));
        assert!(short(&"n".repeat(1 << 20)).len() < 300);
        assert_eq!(row_id("explicit/a"), "explicit/a");
        assert_eq!(row_id(&"p".repeat(1000)), "");
        assert_eq!(row_id("a\u{202e}b"), "");
    }
}
