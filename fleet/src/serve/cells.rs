//! Answers as JSON with limits.

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;
use serde_json::{Value, json};

use crate::answer::{Answer, ColumnUnit};
use crate::error::FleetError;

/// The maximum number of rows of an answer.
pub(super) const MAX_ROWS: usize = 500;

/// The maximum number of characters of a text.
pub(super) const MAX_TEXT: usize = 4_000;

/// The columns, rows, notes and next commands of an answer.
pub(super) fn json(answer: &Answer) -> Result<Value, FleetError> {
    let schema = answer.rows.schema();
    let mut columns = Vec::new();
    let mut rows: Vec<Vec<Value>> = vec![Vec::new(); answer.rows.num_rows()];
    for (field, values) in schema.fields().iter().zip(answer.rows.columns()) {
        let unit = match ColumnUnit::of_field(field) {
            ColumnUnit::Bytes => "bytes",
            ColumnUnit::Share => "share",
            ColumnUnit::Plain if field.data_type().is_numeric() => "number",
            ColumnUnit::Plain => "text",
        };
        columns.push(json!({ "name": cut(field.name()), "unit": unit }));
        for (row, cell) in rows.iter_mut().zip(cells(values)?) {
            row.push(cell);
        }
    }
    let texts = |texts: &[String]| texts.iter().map(|text| cut(text)).collect::<Vec<_>>();
    Ok(json!({
        "title": cut(&answer.title), "columns": columns, "rows": rows,
        "notes": texts(&answer.notes), "next": texts(&answer.next),
    }))
}

fn cells(values: &ArrayRef) -> Result<Vec<Value>, FleetError> {
    let formatter =
        ArrayFormatter::try_new(values, &FormatOptions::default()).map_err(DataFusionError::from)?;
    let cell = |row: usize| match values.data_type() {
        _ if values.is_null(row) => Value::Null,
        DataType::Int64 => values.as_primitive::<Int64Type>().value(row).into(),
        DataType::Float64 => values.as_primitive::<Float64Type>().value(row).into(),
        _ => cut(&formatter.value(row).to_string()).into(),
    };
    Ok((0..values.len()).map(cell).collect())
}

/// The start of a text.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
