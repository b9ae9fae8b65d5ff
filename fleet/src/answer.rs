//! An answer: a table, what it leaves out, and the commands that lead on.

mod text;

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::json::ArrayWriter;
use parquet::arrow::ArrowWriter;

use crate::error::FleetError;

/// How a text shows the numbers of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnUnit {
    /// As it is.
    Plain,
    /// Bytes: B, KiB, MiB, GiB.
    Bytes,
    /// A share from 0 to 1, as a percentage.
    Share,
}

impl ColumnUnit {
    const KEY: &'static str = "memory_fleet.unit";

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bytes => "bytes",
            Self::Share => "share",
        }
    }

    pub(crate) fn of_field(field: &Field) -> Self {
        match field.metadata().get(Self::KEY).map(String::as_str) {
            Some("bytes") => Self::Bytes,
            Some("share") => Self::Share,
            _ => Self::Plain,
        }
    }
}

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum AnswerFormat {
    /// A table for terminals, with units
    Text,
    /// An object with the rows, the notes and the next commands
    Json,
    /// The rows as a Parquet file
    Parquet,
}

/// The answer to a question.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// One sentence about the rows.
    pub title: String,
    /// The rows.
    pub rows: RecordBatch,
    /// What the answer leaves out, or how it counts.
    pub notes: Vec<String>,
    /// Commands that lead on from the first row.
    pub next: Vec<String>,
}

/// The columns of an answer, in order.
#[derive(Debug, Default)]
pub(crate) struct AnswerColumns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl AnswerColumns {
    pub(crate) fn texts<T: AsRef<str>>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.fields.push(Field::new(name, DataType::Utf8, false));
        self.arrays.push(Arc::new(StringArray::from_iter_values(values)));
        self
    }

    pub(crate) fn whole(
        mut self,
        name: &str,
        unit: ColumnUnit,
        values: impl IntoIterator<Item = i64>,
    ) -> Self {
        self.fields.push(with_unit(Field::new(name, DataType::Int64, false), unit));
        self.arrays.push(Arc::new(Int64Array::from_iter_values(values)));
        self
    }

    /// Numbers; one that is not finite becomes null.
    pub(crate) fn numbers(
        mut self,
        name: &str,
        unit: ColumnUnit,
        values: impl IntoIterator<Item = f64>,
    ) -> Self {
        self.fields.push(with_unit(Field::new(name, DataType::Float64, true), unit));
        let values = values.into_iter().map(|value| Some(value).filter(|value| value.is_finite()));
        self.arrays.push(Arc::new(values.collect::<Float64Array>()));
        self
    }

    pub(crate) fn answer(self, title: impl Into<String>) -> Result<Answer, FleetError> {
        let rows = RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays);
        let rows = rows.map_err(datafusion::error::DataFusionError::from)?;
        Ok(Answer { title: title.into(), rows, notes: Vec::new(), next: Vec::new() })
    }
}

fn with_unit(field: Field, unit: ColumnUnit) -> Field {
    match unit {
        ColumnUnit::Plain => field,
        unit => field.with_metadata([(ColumnUnit::KEY.to_owned(), unit.name().to_owned())].into()),
    }
}

impl Answer {
    /// The answer to a query of the user.
    pub(crate) fn from_batches(batches: &[RecordBatch]) -> Result<Self, FleetError> {
        let rows = concat_batches(batches[0].schema_ref(), batches);
        let rows = rows.map_err(datafusion::error::DataFusionError::from)?;
        let title = match rows.num_rows() {
            1 => "1 row".to_owned(),
            count => format!("{count} rows"),
        };
        Ok(Self { title, rows, notes: Vec::new(), next: Vec::new() })
    }

    /// Keeps the first rows.
    #[must_use]
    pub(crate) fn limited(mut self, limit: usize) -> Self {
        let count = self.rows.num_rows();
        if limit > 0 && count > limit {
            self.notes.insert(0, format!("{} more rows: --limit 0 shows all", count - limit));
            self.rows = self.rows.slice(0, limit);
        }
        self
    }

    /// Writes the answer.
    ///
    /// # Errors
    ///
    /// Returns an error if `out` fails.
    pub fn write(&self, format: AnswerFormat, mut out: impl Write + Send) -> Result<(), FleetError> {
        match format {
            AnswerFormat::Text => out.write_all(text::text(self)?.as_bytes()).map_err(FleetError::Output),
            AnswerFormat::Json => self.write_json(&mut out),
            AnswerFormat::Parquet => {
                let failed = |error: parquet::errors::ParquetError| FleetError::Output(error.into());
                let mut writer = ArrowWriter::try_new(out, self.rows.schema(), None).map_err(failed)?;
                writer.write(&self.rows).map_err(failed)?;
                writer.close().map(drop).map_err(failed)
            }
        }
    }

    fn write_json(&self, out: &mut impl Write) -> Result<(), FleetError> {
        let mut rows = ArrayWriter::new(Vec::new());
        let written = rows.write(&self.rows).and_then(|()| rows.finish());
        written.map_err(datafusion::error::DataFusionError::from)?;
        let rows = String::from_utf8(rows.into_inner()).expect("JSON is UTF-8");
        let rows = if rows.is_empty() { "[]" } else { &rows };
        let [title, notes, next] = [
            serde_json::Value::from(self.title.as_str()),
            serde_json::Value::from(self.notes.clone()),
            serde_json::Value::from(self.next.clone()),
        ];
        writeln!(out, "{{\"title\":{title},\"notes\":{notes},\"next\":{next},\"rows\":{rows}}}")
            .map_err(FleetError::Output)
    }
}
