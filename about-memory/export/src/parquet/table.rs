//! A file with one table: its schema, its properties, and columns from iterators.

use std::io::{self, Write};
use std::sync::Arc;

use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType};
use ::parquet::data_type::{Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{KeyValue, SortingColumn};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use ::parquet::schema::types::ColumnPath;
use bytes::Bytes;

use super::options::{Options, SCHEMA_VERSION};
use super::run::Run;
use crate::error::ExportError;

/// What a table is.
pub(super) struct Layout {
    pub(super) name: &'static str,
    /// In the format's own notation.
    pub(super) schema: &'static str,
    /// The leading columns of the order.
    pub(super) sorted_by: &'static [&'static str],
    /// Columns whose neighbours differ by little.
    pub(super) deltas: &'static [&'static str],
    /// Sorted texts too many for a dictionary: each is stored as what differs from the one before.
    pub(super) prefixes: &'static [&'static str],
    /// Amounts, which a dictionary would not make smaller.
    pub(super) plain: &'static [&'static str],
    pub(super) bloom: &'static [&'static str],
}

const UNITS: &str = "ts, started: microseconds since 1970, UTC; amount: as column units says (percentage: hundredths of \
                     a per cent); bytes, req, usable, alloc_bytes, retained: bytes; blocks, alloc_blocks, count: count";

/// The most rows, and about the most bytes, that are handed over at once.
const BATCH: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;
/// The format's lengths have 31 bits.
const MAX_TEXT: usize = 1 << 30;
/// What the name of a dictionary entry may add up to: beyond it, a column is written without one.
const DICTIONARY_BYTES: usize = 1 << 20;

type Out<'w> = Box<dyn Write + Send + 'w>;

/// A file.
pub(super) struct Table<'w> {
    writer: SerializedFileWriter<Out<'w>>,
    rows: usize,
}

pub(super) fn failed(error: ParquetError) -> ExportError {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => ExportError::Write(*error),
            Err(error) => ExportError::Write(io::Error::other(error)),
        },
        error => ExportError::Write(io::Error::other(error)),
    }
}

impl<'w> Table<'w> {
    /// `rows` bounds the rows of the table.
    pub(super) fn new(
        layout: &Layout,
        options: &Options,
        rows: usize,
        out: impl Write + Send + 'w,
    ) -> Result<Self, ExportError> {
        let schema = Arc::new(parse_message_type(layout.schema).expect("the layout's schema is valid"));
        let path = |name: &str| ColumnPath::new(name.split('.').map(str::to_owned).collect());
        let level = ZstdLevel::try_new(options.level).map_err(failed)?;
        let names: Vec<&str> = schema.get_fields().iter().map(|field| field.name()).collect();
        let sorting = layout.sorted_by.iter().map(|name| {
            let index = names.iter().position(|known| known == name).expect("the column exists");
            // All columns before the last one sorted by are leaves, so that the index of a field is that of its leaf.
            SortingColumn { column_idx: index as i32, descending: false, nulls_first: false }
        });
        let row_group = options.row_group.max(1);
        let metadata = [
            ("memory_report.schema", SCHEMA_VERSION.to_string()),
            ("memory_report.table", layout.name.to_owned()),
            ("memory_report.units", UNITS.to_owned()),
        ];
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            .set_max_row_group_row_count(Some(row_group))
            .set_created_by(options.created_by.clone())
            .set_sorting_columns(Some(sorting.collect()))
            .set_key_value_metadata(Some(
                metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value)).into(),
            ));
        for name in layout.deltas {
            properties = properties
                .set_column_dictionary_enabled(path(name), false)
                .set_column_encoding(path(name), Encoding::DELTA_BINARY_PACKED);
        }
        for name in layout.prefixes {
            properties = properties.set_column_encoding(path(name), Encoding::DELTA_BYTE_ARRAY);
        }
        for name in layout.plain {
            properties = properties.set_column_dictionary_enabled(path(name), false);
        }
        for name in layout.bloom {
            let distinct = rows.min(row_group).max(1) as u64;
            properties = properties
                .set_column_bloom_filter_enabled(path(name), true)
                .set_column_bloom_filter_max_ndv(path(name), distinct);
        }
        let out: Out<'w> = Box::new(out);
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties.build())).map_err(failed)?;
        Ok(Self { writer, rows: row_group })
    }

    /// Writes all rows, as row groups. `each` writes all columns of some rows, in the order of the schema.
    pub(super) fn write<R>(
        mut self,
        rows: &[R],
        mut each: impl FnMut(&mut Group<'_, 'w>, &[R]) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        for rows in rows.chunks(self.rows) {
            let mut group = Group { writer: self.writer.next_row_group().map_err(failed)? };
            each(&mut group, rows)?;
            group.writer.close().map_err(failed)?;
        }
        self.writer.close().map_err(failed)?;
        Ok(())
    }
}

/// A value of a column with levels, as the format has them. `value` is there if and only if `definition` is the column's
/// maximum; `repetition` is 0 at the start of a row.
pub(super) struct Entry<T> {
    pub(super) repetition: i16,
    pub(super) definition: i16,
    pub(super) value: Option<T>,
}

impl<T> Entry<T> {
    /// Of a column that is not nested.
    fn flat(value: Option<T>) -> Self {
        Self { repetition: 0, definition: i16::from(value.is_some()), value }
    }
}

/// Rows of a file: columns, in the order of the schema.
pub(super) struct Group<'g, 'w> {
    writer: SerializedRowGroupWriter<'g, Out<'w>>,
}

impl Group<'_, '_> {
    /// Writes a column. `size` gives the bytes of a value, and `convert` makes the values of a batch.
    fn column<D: DataType, T>(
        &mut self,
        entries: &mut dyn Iterator<Item = Entry<T>>,
        size: impl Fn(&T) -> usize,
        convert: impl Fn(&mut Vec<T>, &mut Vec<D::T>),
    ) -> Result<(), ExportError> {
        let mut column = self.writer.next_column().map_err(failed)?.expect("the schema has as many columns");
        let writer = column.typed::<D>();
        let descriptor = writer.get_descriptor();
        let is_optional = descriptor.max_def_level() > 0;
        let is_repeated = descriptor.max_rep_level() > 0;
        let (mut repetitions, mut definitions) = (Vec::new(), Vec::new());
        let (mut taken, mut values): (Vec<T>, Vec<D::T>) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        let mut entries = entries.peekable();
        while let Some(Entry { repetition, definition, value }) = entries.next() {
            repetitions.push(repetition);
            definitions.push(definition);
            if let Some(value) = value {
                let size = size(&value);
                if size > MAX_TEXT {
                    return Err(ExportError::TooLarge(
                        "Parquet",
                        "a text with a length in bytes",
                        size as i128,
                        MAX_TEXT as i128,
                    ));
                }
                bytes += size;
                taken.push(value);
            }
            let is_full = definitions.len() >= BATCH || bytes >= BATCH_BYTES;
            // A batch ends with a row.
            let next = entries.peek();
            if next.is_none() || (is_full && next.is_some_and(|next| next.repetition == 0)) {
                convert(&mut taken, &mut values);
                writer
                    .write_batch(
                        &values,
                        is_optional.then_some(&*definitions),
                        is_repeated.then_some(&*repetitions),
                    )
                    .map_err(failed)?;
                repetitions.clear();
                definitions.clear();
                taken.clear();
                values.clear();
                bytes = 0;
            }
        }
        column.close().map_err(failed)
    }

    /// A column of texts with levels.
    pub(super) fn nested_texts(
        &mut self,
        entries: &mut dyn Iterator<Item = Entry<&str>>,
    ) -> Result<(), ExportError> {
        self.column::<ByteArrayType, _>(
            entries,
            |text| text.len(),
            |texts, values| {
                let mut all = Vec::with_capacity(texts.iter().map(|text| text.len()).sum());
                texts.iter().for_each(|text| all.extend_from_slice(text.as_bytes()));
                let all = Bytes::from(all);
                let mut start = 0;
                values.extend(texts.drain(..).map(|text| {
                    let end = start + text.len();
                    let value = ByteArray::from(all.slice(start..end));
                    start = end;
                    value
                }));
            },
        )
    }

    /// A column of integers with levels.
    pub(super) fn nested_integers(
        &mut self,
        entries: &mut dyn Iterator<Item = Entry<i64>>,
    ) -> Result<(), ExportError> {
        self.column::<Int64Type, _>(entries, |_| 8, |taken, values| values.append(taken))
    }

    /// A column of small integers with levels.
    pub(super) fn nested_small(
        &mut self,
        entries: &mut dyn Iterator<Item = Entry<i32>>,
    ) -> Result<(), ExportError> {
        self.column::<Int32Type, _>(entries, |_| 4, |taken, values| values.append(taken))
    }

    /// A column of texts.
    pub(super) fn texts<'t>(
        &mut self,
        rows: impl Iterator<Item = Option<&'t str>>,
    ) -> Result<(), ExportError> {
        self.nested_texts(&mut rows.map(Entry::flat))
    }

    /// A column of integers.
    pub(super) fn integers(&mut self, rows: impl Iterator<Item = Option<i64>>) -> Result<(), ExportError> {
        self.nested_integers(&mut rows.map(Entry::flat))
    }

    /// A column of small integers.
    pub(super) fn small(&mut self, rows: impl Iterator<Item = Option<i32>>) -> Result<(), ExportError> {
        self.nested_small(&mut rows.map(Entry::flat))
    }

    /// The columns `ts`, `run_id`, `host` and `service`, with which most tables begin.
    pub(super) fn run<'r>(&mut self, runs: impl Iterator<Item = &'r Run> + Clone) -> Result<(), ExportError> {
        self.integers(runs.clone().map(|run| Some(micros(run.time))))?;
        self.column::<FixedLenByteArrayType, _>(
            &mut runs.clone().map(|run| Entry::flat(Some(run.id))),
            |_| 16,
            |ids, values| {
                let mut last: Option<([u8; 16], FixedLenByteArray)> = None;
                values.extend(ids.drain(..).map(|id| match &last {
                    Some((known, value)) if *known == id => value.clone(),
                    _ => {
                        let value = FixedLenByteArray::from(id.to_vec());
                        last = Some((id, value.clone()));
                        value
                    }
                }));
            },
        )?;
        self.texts(runs.clone().map(|run| run.host.as_deref()))?;
        self.texts(runs.map(|run| Some(&*run.service)))
    }
}

/// Microseconds since 1970; the format's largest time stands for later ones.
pub(super) fn micros(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
