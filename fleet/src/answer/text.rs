//! An answer as a text for a terminal.

use std::fmt::Write as _;

use datafusion::arrow::array::{Array, ArrayRef, AsArray as _};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;

use super::{Answer, ColumnUnit};
use crate::error::FleetError;

/// The maximum number of characters in a cell.
const MAX_CELL: usize = 80;

/// Writes the title, the table, the notes and the next commands.
pub(super) fn text(answer: &Answer) -> Result<String, FleetError> {
    let schema = answer.rows.schema();
    let mut columns = Vec::new();
    for (field, values) in schema.fields().iter().zip(answer.rows.columns()) {
        let mut cells = vec![field.name().replace('_', " ")];
        cells.extend(shown(values, ColumnUnit::of_field(field))?.iter().map(|cell| clean(cell)));
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or_default();
        columns.push((cells, width, field.data_type().is_numeric()));
    }
    let mut text = format!("{}\n", clean_line(&answer.title));
    if answer.rows.num_rows() > 0 {
        text.push('\n');
        for row in 0..=answer.rows.num_rows() {
            let mut line = String::new();
            for (cells, width, is_number) in &columns {
                let (cell, gap) = (&cells[row], if line.is_empty() { "" } else { "  " });
                // Spaces before a number, and after a text.
                let _ = match is_number {
                    true => write!(line, "{gap}{cell:>width$}"),
                    false => write!(line, "{gap}{cell:<width$}"),
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    for (index, note) in answer.notes.iter().enumerate() {
        let _ = writeln!(text, "{}{}", if index == 0 { "\n" } else { "" }, clean_line(note));
    }
    for (index, next) in answer.next.iter().enumerate() {
        let _ = writeln!(text, "{}{}", if index == 0 { "\nNext:\n    " } else { "    " }, clean_line(next));
    }
    Ok(text)
}

/// The cells of a column.
fn shown(values: &ArrayRef, unit: ColumnUnit) -> Result<Vec<String>, FleetError> {
    let rows = 0..values.len();
    let number = |row: usize| match values.data_type() {
        _ if values.is_null(row) => None,
        DataType::Int64 => Some(values.as_primitive::<Int64Type>().value(row) as f64),
        DataType::Float64 => Some(values.as_primitive::<Float64Type>().value(row)),
        _ => None,
    };
    if unit != ColumnUnit::Plain {
        let cell = |row| match (number(row), unit) {
            (None, _) => String::new(),
            (Some(number), ColumnUnit::Bytes) => bytes(number),
            (Some(number), _) => format!("{:.1}%", number * 100.0),
        };
        return Ok(rows.map(cell).collect());
    }
    if *values.data_type() == DataType::Float64 {
        return Ok(rows
            .map(|row| number(row).map_or(String::new(), |number| format!("{number:.2}")))
            .collect());
    }
    let options = FormatOptions::default().with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%SZ"));
    let formatter = ArrayFormatter::try_new(values, &options).map_err(DataFusionError::from)?;
    Ok(rows.map(|row| formatter.value(row).to_string()).collect())
}

/// Bytes with three digits, in powers of 1,024.
pub(crate) fn bytes(number: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut amount, mut unit) = (number, 0);
    while amount.abs() >= 1023.5 && unit + 1 < units.len() {
        amount /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{amount:.0} B"),
        _ if amount.abs() < 9.995 => format!("{amount:.2} {}", units[unit]),
        _ if amount.abs() < 99.95 => format!("{amount:.1} {}", units[unit]),
        _ => format!("{amount:.0} {}", units[unit]),
    }
}

/// A cell without control characters and marks of text direction, cut in its middle.
fn clean(cell: &str) -> String {
    let cell = clean_line(cell);
    let count = cell.chars().count();
    if count <= MAX_CELL {
        return cell;
    }
    let half = MAX_CELL / 2;
    let start: String = cell.chars().take(half - 1).collect();
    let end: String = cell.chars().skip(count - half).collect();
    format!("{start}…{end}")
}

fn clean_line(text: &str) -> String {
    let mut clean = String::new();
    for c in text.chars() {
        match c.is_control() || memory_report::is_deceptive(c) {
            true => clean.extend(c.escape_unicode()),
            false => clean.push(c),
        }
    }
    clean
}
