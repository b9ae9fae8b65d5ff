//! Writes files of Arrow's batches, as `memory-export` writes tables: the same columns, order, compression and metadata.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use memory_export::parquet::SCHEMA_VERSION;
use memory_report::new_file::{NewFile, Readers};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;

use crate::buckets::BUCKETS;
use crate::error::FleetError;
use crate::folder::{INPUTS, RUNS};

/// The number of rows in a row group.
const ROW_GROUP: usize = 1_000_000;

/// What a file's metadata says about its contents.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileFacts<'f> {
    /// The ids of the runs, separated by spaces.
    pub(crate) runs: &'f str,
    /// The names of the files that this file replaces, separated by spaces.
    pub(crate) inputs: &'f str,
}

/// A file of a table. It gets its name when it is complete.
pub(crate) struct TableFileWriter {
    new: NewFile,
    writer: ArrowWriter<File>,
    rows: u64,
}

impl TableFileWriter {
    /// Starts a file of the table `table`, and creates its folder.
    pub(crate) fn create(
        path: &Path,
        table: &str,
        schema: &SchemaRef,
        facts: FileFacts<'_>,
    ) -> Result<Self, FleetError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| FleetError::at(folder, error))?;
        }
        let mut new = NewFile::create(path, Readers::Umask).map_err(|error| FleetError::at(path, error))?;
        let file = new.file().try_clone().map_err(|error| FleetError::at(path, error))?;
        let options = ArrowWriterOptions::new()
            .with_properties(properties(table, schema, facts))
            .with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(schema), options);
        Ok(Self { new, writer: writer.map_err(|error| FleetError::at(path, error))?, rows: 0 })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), FleetError> {
        self.rows += batch.num_rows() as u64;
        self.writer.write(batch).map_err(|error| FleetError::at(self.new.incomplete(), error))
    }

    /// Gives the file its name, and returns the number of its rows.
    pub(crate) fn finish(self) -> Result<u64, FleetError> {
        let Self { mut new, writer, rows } = self;
        let path = new.incomplete().to_owned();
        writer.close().map_err(|error| FleetError::at(&path, error))?;
        // The data is on the disk before the name, so that a crash of the machine leaves no torn file.
        let finished = new.file().sync_data().and_then(|()| new.finish());
        finished.map_err(|error| FleetError::at(&path, error))?;
        Ok(rows)
    }
}

fn properties(table: &str, schema: &Schema, facts: FileFacts<'_>) -> WriterProperties {
    let sorted: &[&str] = match table {
        "warnings" => &["service", "ts"],
        "reports" => &["service", "process", "path", "ts"],
        BUCKETS => &["service", "path", "bucket"],
        _ => &["stack_id"],
    };
    // Columns before the first nested column have the index of their leaf.
    let sorting = sorted.iter().filter_map(|name| {
        let column_idx = i32::try_from(schema.index_of(name).ok()?).ok()?;
        Some(SortingColumn { column_idx, descending: false, nulls_first: false })
    });
    let mut facts_of_file =
        vec![("memory_report.schema", SCHEMA_VERSION.to_string()), ("memory_report.table", table.to_owned())];
    for (key, value) in [(RUNS, facts.runs), (INPUTS, facts.inputs)] {
        if !value.is_empty() {
            facts_of_file.push((key, value.to_owned()));
        }
    }
    let facts = facts_of_file.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value));
    let level = ZstdLevel::try_new(3).expect("zstd has this level");
    let mut properties = WriterProperties::builder()
        // Version 1 has no dictionaries for the ids of runs, which take three quarters of a file without one.
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(level))
        .set_dictionary_page_size_limit(1 << 20)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_created_by(concat!("memory-fleet ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_sorting_columns(Some(sorting.collect()))
        .set_key_value_metadata(Some(facts.collect()));
    for field in schema.fields() {
        let path = ColumnPath::from(field.name().as_str());
        properties = match field.data_type() {
            DataType::Timestamp(..) if field.name() != "started" => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            DataType::Int64 | DataType::Float64 => properties.set_column_dictionary_enabled(path, false),
            _ => properties,
        };
    }
    properties.build()
}

/// The schema with texts as dictionaries: few values, each stored once in memory.
pub(crate) fn with_dictionaries(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 => {
            let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            Arc::new(Field::new(field.name(), text, field.is_nullable()))
        }
        _ => Arc::clone(field),
    });
    Schema::new(fields.collect::<Vec<_>>())
}
