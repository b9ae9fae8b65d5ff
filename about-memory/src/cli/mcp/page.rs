//! Answers within a number of bytes: rows, the sums of the rest, cursors, and text.
//!
//! The number of bytes bounds the whole message, with text and structured content. Rows are left out until the answer
//! fits, and their sums stay in it.

use core::hash::{Hash, Hasher as _};
use std::fmt::Write as _;
use std::hash::DefaultHasher;

use about_memory::escape;
use dmd_analyze::program::bytes;
use serde_json::{Map, Value, json};

use super::table::{AmountRow, RowSums, TableView};

/// The bytes of an answer, by default and at most.
pub(super) const DEFAULT_BYTES: usize = 6 << 10;
pub(super) const MAX_BYTES: usize = 48 << 10;
/// In fewer bytes, one row with the longest names may not fit.
pub(super) const LEAST_BYTES: usize = 3 << 10;

/// The rows of an answer, by default and at most.
pub(super) const DEFAULT_ROWS: u64 = 20;
pub(super) const MAX_ROWS: u64 = 500;

/// The bytes of a message around its result: the id and the names of fields.
const ENVELOPE: usize = 192;
/// A name has at most this many bytes.
const MAX_NAME: usize = 160;
/// An answer has at most this many notes, of this many bytes each.
const MAX_NOTES: usize = 5;
const MAX_NOTE: usize = 200;

/// The form of structured content.
pub(super) const SCHEMA: &str = "about-memory/mcp/1";

/// The result of a tool.
pub(super) struct ToolAnswer {
    pub(super) structured: Value,
    pub(super) text: String,
}

impl ToolAnswer {
    pub(super) fn into_result(self, is_modern: bool) -> Value {
        let mut result = json!({
            "content": [{ "type": "text", "text": self.text }],
            "structuredContent": self.structured,
            "isError": false,
        });
        if is_modern {
            result["resultType"] = json!("complete");
        }
        result
    }

    /// The bytes of the whole message.
    fn bytes(&self) -> usize {
        self.structured.to_string().len() + json!(self.text).to_string().len() + ENVELOPE
    }
}

/// Escapes a text that may come from the measured program, and cuts it after at most `most` bytes.
pub(super) fn cut(text: &str, most: usize) -> String {
    // Escapes only as much as can stay: a name may have megabytes.
    let start = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let mut escaped = escape(&text[..start]);
    let is_cut = start < text.len() || escaped.len() > most;
    if is_cut {
        let room = most.saturating_sub('…'.len_utf8()).min(escaped.len());
        let end = (0..=room).rev().find(|at| escaped.is_char_boundary(*at)).unwrap_or(0);
        escaped.truncate(end);
        escaped.push('…');
    }
    escaped
}

/// A text from the measured program in quotes, for the text of an answer.
pub(super) fn quoted(text: &str, most: usize) -> String {
    format!("\"{}\"", cut(text, most).replace('"', "'"))
}

/// An amount for JSON. Amounts beyond 63 bits become the largest amount of 63 bits.
pub(super) fn number(amount: i128) -> Value {
    json!(i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX }))
}

pub(super) fn sums(sums: RowSums) -> Value {
    json!({ "rows": sums.rows, "bytes": number(sums.bytes), "count": number(sums.count) })
}

/// Makes the largest answer that fits: `make` gets the number of rows, at most `most`.
pub(super) fn fit(most: usize, max_bytes: usize, make: impl Fn(usize) -> ToolAnswer) -> ToolAnswer {
    let answer = make(most);
    if answer.bytes() <= max_bytes || most == 0 {
        return answer;
    }
    // The number of rows that fits is at least `fits`, and less than `too_many`.
    let (mut fits, mut too_many) = (0, most);
    while fits + 1 < too_many {
        let middle = fits.midpoint(too_many);
        if make(middle).bytes() <= max_bytes {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    // At least one row, so that each page continues the list.
    make(fits.max(1))
}

/// The place in a list at which a page starts.
pub(super) struct PageStart {
    /// The hash of the list: its source, group and order.
    list: u64,
    pub(super) first: usize,
}

impl PageStart {
    /// Reads a cursor. `list` identifies the list that the call asks for.
    pub(super) fn new(list: &impl Hash, cursor: Option<&str>) -> Result<Self, String> {
        let mut hasher = DefaultHasher::new();
        list.hash(&mut hasher);
        let list = hasher.finish();
        let Some(cursor) = cursor else { return Ok(Self { list, first: 0 }) };
        let parts = cursor.split_once('-').and_then(|(hash, first)| {
            Some((u64::from_str_radix(hash, 16).ok()?, first.parse::<usize>().ok()?))
        });
        match parts {
            Some((hash, first)) if hash == list => Ok(Self { list, first }),
            _ => Err("`cursor` belongs to another list: repeat the arguments of the call that returned it, or call \
                      without a cursor"
                .to_owned()),
        }
    }

    fn cursor(&self, next: usize) -> String {
        format!("{:016x}-{next}", self.list)
    }
}

/// A row as structured content.
fn row_value(row: &AmountRow) -> Value {
    let mut object = Map::new();
    if !row.id.is_empty() {
        object.insert("id".to_owned(), json!(row.id));
    }
    object.insert("name".to_owned(), json!(cut(&row.name, MAX_NAME)));
    if !row.place.is_empty() {
        object.insert("place".to_owned(), json!(cut(&row.place, MAX_NAME)));
    }
    object.insert("bytes".to_owned(), number(row.bytes));
    object.insert("count".to_owned(), number(row.count));
    for (name, amount) in &row.more {
        object.insert((*name).to_owned(), number(*amount));
    }
    Value::Object(object)
}

/// A number of things: `1 block`, `2 blocks`.
fn counted(count: i128, things: &str) -> String {
    let one = if things == "processes" { "process" } else { things.trim_end_matches('s') };
    format!("{count} {}", if count == 1 { one } else { things })
}

/// A row as a line of text, with its share if `whole` is known.
fn row_text(row: &AmountRow, whole: Option<i128>, counts: &str) -> String {
    let mut line = bytes(row.bytes);
    if let Some(whole) = whole.filter(|whole| *whole != 0) {
        let _ = write!(line, " ({:.1}%)", 100.0 * row.bytes as f64 / whole as f64);
    }
    let _ = write!(line, ", {}: {}", counted(row.count, counts), quoted(&row.name, MAX_NAME));
    if !row.place.is_empty() {
        let _ = write!(line, " at {}", quoted(&row.place, MAX_NAME));
    }
    if !row.id.is_empty() && row.id != row.name {
        let is_plain = row.id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let id = if is_plain { row.id.clone() } else { format!("\"{}\"", row.id) };
        let _ = write!(line, " [id {id}]");
    }
    line.push('\n');
    line
}

/// The first `count` rows of a view from `first` on, with all sums, as structured content and text.
pub(super) fn part(view: &TableView, start: &PageStart, count: usize) -> (Map<String, Value>, String) {
    let first = start.first.min(view.len());
    let end = view.len().min(first + count);
    let shown = view.sums(first..end);
    let rest = view.sums(end..view.len());
    let rows: Vec<AmountRow> = (first..end).map(|place| view.row(place)).collect();
    let table = &view.table;
    let cursor = (end < view.len()).then(|| start.cursor(end));
    let mut object = Map::new();
    object.insert("group".to_owned(), json!(table.group));
    object.insert("bytesAre".to_owned(), json!(table.bytes));
    object.insert("countsAre".to_owned(), json!(table.counts));
    object.insert("rowsOverlap".to_owned(), json!(table.overlaps));
    object.insert("wholeBytes".to_owned(), table.whole.map_or(Value::Null, number));
    object.insert("total".to_owned(), sums(view.total));
    object.insert("shown".to_owned(), sums(shown));
    object.insert("rest".to_owned(), sums(rest));
    object.insert("first".to_owned(), json!(first));
    object.insert("rows".to_owned(), json!(rows.iter().map(row_value).collect::<Vec<_>>()));
    object.insert("cursor".to_owned(), json!(cursor));
    let mut text = format!(
        "By {}: {} in {}, {} ({}).\n",
        table.group,
        bytes(view.total.bytes),
        counted(view.total.count, table.counts),
        counted(view.total.rows as i128, "rows"),
        table.bytes
    );
    rows.iter().for_each(|row| text += &row_text(row, table.whole, table.counts));
    if first > 0 {
        let _ = writeln!(text, "The page starts after {}.", counted(first as i128, "rows"));
    }
    if rest.rows > 0 {
        let more = counted(rest.rows as i128, "rows");
        let count = counted(rest.count, table.counts);
        let _ = writeln!(text, "{} in {count} are not shown: {more}.", bytes(rest.bytes));
    }
    if table.overlaps {
        text += "The rows overlap: do not add their bytes.\n";
    }
    (object, text)
}

/// Notes that fit into an answer.
pub(super) fn notes<'n>(notes: impl IntoIterator<Item = &'n String>) -> Vec<String> {
    notes.into_iter().take(MAX_NOTES).map(|note| cut(note, MAX_NOTE)).collect()
}

/// Notes for the text of an answer, in quotes: the warnings of a report are free texts of its file.
pub(super) fn notes_text(notes: &[String]) -> String {
    notes.iter().map(|note| format!("Note: {}\n", quoted(note, MAX_NOTE))).collect()
}

/// One page of a view, within a number of bytes.
pub(super) fn page(
    handle: &str,
    view: &TableView,
    start: &PageStart,
    most: usize,
    max_bytes: usize,
    heading: &str,
) -> ToolAnswer {
    let notes = notes(&view.table.notes);
    let left = view.len().saturating_sub(start.first);
    fit(most.min(left), max_bytes, |count| {
        let (mut object, text) = part(view, start, count);
        object.insert("schema".to_owned(), json!(SCHEMA));
        object.insert("handle".to_owned(), json!(handle));
        object.insert("notes".to_owned(), json!(notes));
        let next = match object.get("cursor").and_then(Value::as_str) {
            Some(cursor) => format!("More: repeat the call with cursor {cursor}\n"),
            None => String::new(),
        };
        let text = format!("{heading}{text}{}{next}", notes_text(&notes));
        ToolAnswer { structured: Value::Object(object), text }
    })
}
