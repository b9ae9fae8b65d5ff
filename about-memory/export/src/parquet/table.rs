//! A file with one table: its schema, its properties and its row groups.

use std::io::Write;
use std::sync::Arc;

use super::columns::{EncodedColumns, TableColumns, failed};
use super::options::{ParquetOptions, SCHEMA_VERSION};
use super::run::ParquetRun;
use super::threads;
use crate::error::ExportError;
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::file::metadata::{KeyValue, SortingColumn};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use ::parquet::schema::types::ColumnPath;

/// The layout of a table.
pub(super) struct TableLayout {
    pub(super) name: &'static str,
    /// The schema in the format's own notation.
    pub(super) schema: &'static str,
    /// The columns by which rows are sorted, in this order.
    pub(super) sorted_by: &'static [&'static str],
    /// Columns in which neighboring values differ little. They are stored as differences.
    pub(super) deltas: &'static [&'static str],
    /// Columns of sorted texts with too many values for a dictionary. A text is stored as the difference to the
    /// previous text.
    pub(super) prefixes: &'static [&'static str],
    /// Columns of amounts. A dictionary would not make them smaller.
    pub(super) plain: &'static [&'static str],
    pub(super) bloom: &'static [&'static str],
}

const UNITS: &str = "ts, started: microseconds since 1970, UTC; amount: as column units says (percentage: hundredths of \
                     a per cent); bytes, req, usable, alloc_bytes, retained: bytes; blocks, alloc_blocks, count: count";

/// The maximum size of a dictionary, in bytes. Larger columns are written without a dictionary.
const DICTIONARY_BYTES: usize = 1 << 20;

/// The minimum number of rows for several threads. Fewer rows are encoded before another thread has started.
const FEW: usize = 10_000;

type TableOutput<'w> = Box<dyn Write + Send + 'w>;

/// A file that is being written.
pub(super) struct TableWriter<'w> {
    writer: SerializedFileWriter<TableOutput<'w>>,
    rows: usize,
    threads: usize,
}

impl<'w> TableWriter<'w> {
    /// `rows` is the maximum number of rows in the table.
    pub(super) fn new<'r>(
        layout: &TableLayout,
        options: &ParquetOptions,
        rows: usize,
        runs: impl IntoIterator<Item = &'r ParquetRun>,
        out: impl Write + Send + 'w,
    ) -> Result<Self, ExportError> {
        let schema = Arc::new(parse_message_type(layout.schema).expect("the layout's schema is valid"));
        let path = |name: &str| ColumnPath::new(name.split('.').map(str::to_owned).collect());
        let level = ZstdLevel::try_new(options.level).map_err(failed)?;
        let names: Vec<&str> = schema.get_fields().iter().map(|field| field.name()).collect();
        let sorting = layout.sorted_by.iter().map(|name| {
            let index = names.iter().position(|known| known == name).expect("the column exists");
            // All columns up to the last sort column are leaves, so the index of a field equals the index of its leaf.
            SortingColumn { column_idx: index as i32, descending: false, nulls_first: false }
        });
        let row_group = options.row_group.max(1);
        let runs: Vec<String> = runs.into_iter().map(ParquetRun::id_text).collect();
        let metadata = [
            ("memory_report.schema", SCHEMA_VERSION.to_string()),
            ("memory_report.table", layout.name.to_owned()),
            ("memory_report.units", UNITS.to_owned()),
            ("memory_report.runs", runs.join(" ")),
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
        let out: TableOutput<'w> = Box::new(out);
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties.build())).map_err(failed)?;
        Ok(Self { writer, rows: row_group, threads: threads::number(options.threads) })
    }

    /// Writes all rows in row groups. `each` adds all columns of some rows, in the order of the schema.
    pub(super) fn write<'r, R>(
        mut self,
        rows: &'r [R],
        each: impl Fn(&mut TableColumns<'r>, &'r [R]),
    ) -> Result<(), ExportError> {
        for rows in rows.chunks(self.rows) {
            let mut columns = TableColumns::default();
            each(&mut columns, rows);
            let threads = if rows.len() < FEW { 1 } else { self.threads };
            let encoded = columns.encode(self.writer.schema_descr(), self.writer.properties(), threads);
            let mut group = self.writer.next_row_group().map_err(failed)?;
            for column in encoded {
                let EncodedColumns { bytes, facts } = column?;
                group.append_column(&bytes, facts).map_err(failed)?;
            }
            group.close().map_err(failed)?;
        }
        self.writer.close().map_err(failed)?;
        Ok(())
    }
}
