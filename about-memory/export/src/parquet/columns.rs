//! The columns of some rows. Threads encode them in parallel, each into its own memory.

use std::io;

use ::parquet::column::writer::{
    ColumnCloseResult, ColumnWriter, get_column_writer, get_typed_column_writer_mut,
};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType};
use ::parquet::data_type::{Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterPropertiesPtr;
use ::parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use ::parquet::schema::types::SchemaDescriptor;
use bytes::Bytes;

use super::run::ParquetRun;
use super::threads;
use crate::error::ExportError;

/// A batch ends with the row that reaches this number of entries or this number of bytes.
const BATCH: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;
/// The maximum length of a text. Lengths in the format have 31 bits.
const MAX_TEXT: usize = 1 << 30;

/// A value of a column, with its levels in the format. `value` is present exactly if `definition` is the column's
/// maximum. `repetition` is 0 at the start of a row.
pub(super) struct ColumnEntry<T> {
    pub(super) repetition: i16,
    pub(super) definition: i16,
    pub(super) value: Option<T>,
}

impl<T> ColumnEntry<T> {
    /// An entry of a column that is not nested.
    fn flat(value: Option<T>) -> Self {
        Self { repetition: 0, definition: i16::from(value.is_some()), value }
    }
}

type EncodeColumn<'r> = Box<dyn FnOnce(&mut ColumnWriter<'_>) -> Result<(), ExportError> + Send + 'r>;

/// The columns of some rows, in the order of the schema.
#[derive(Default)]
pub(super) struct TableColumns<'r> {
    all: Vec<EncodeColumn<'r>>,
}

/// A column in its encoded form.
pub(super) struct EncodedColumns {
    pub(super) bytes: Bytes,
    pub(super) facts: ColumnCloseResult,
}

impl<'r> TableColumns<'r> {
    /// Encodes all columns, on at most this number of threads.
    pub(super) fn encode(
        self,
        schema: &SchemaDescriptor,
        properties: &WriterPropertiesPtr,
        threads: usize,
    ) -> Vec<Result<EncodedColumns, ExportError>> {
        let mut all: Vec<(Option<EncodeColumn<'r>>, Option<_>)> =
            self.all.into_iter().map(|column| (Some(column), None)).collect();
        threads::for_each(all.iter_mut().enumerate(), threads, |(index, (column, encoded))| {
            *encoded = column.take().map(|column| encode(schema, properties, index, column));
        });
        all.into_iter().filter_map(|(_, encoded)| encoded).collect()
    }

    /// Adds a column. `size` returns the bytes of a value, and `convert` converts the values of a batch. `same`
    /// compares values: many columns have the same value in all rows, so a batch that equals the previous batch is not
    /// converted again.
    fn add<D: DataType, T: 'r>(
        &mut self,
        entries: impl Iterator<Item = ColumnEntry<T>> + Send + 'r,
        size: impl Fn(&T) -> usize + Send + 'r,
        same: impl Fn(&T, &T) -> bool + Send + 'r,
        convert: impl Fn(&[T], &mut Vec<D::T>) + Send + 'r,
    ) {
        self.all.push(Box::new(move |writer| {
            let writer = get_typed_column_writer_mut::<D>(writer);
            let descriptor = writer.get_descriptor();
            let is_optional = descriptor.max_def_level() > 0;
            let is_repeated = descriptor.max_rep_level() > 0;
            let (mut repetitions, mut definitions) = (Vec::new(), Vec::new());
            let (mut taken, mut converted, mut values): (Vec<T>, Vec<T>, Vec<D::T>) = Default::default();
            let (mut count, mut bytes) = (0, 0);
            let mut entries = entries;
            loop {
                let entry = entries.next();
                // A batch ends at the end of a row.
                let is_full = count >= BATCH || bytes >= BATCH_BYTES;
                let is_end = entry.as_ref().is_none_or(|next| is_full && next.repetition == 0);
                if is_end && count > 0 {
                    let is_same = taken.len() == converted.len()
                        && taken.iter().zip(&converted).all(|(one, other)| same(one, other));
                    if !is_same {
                        values.clear();
                        convert(&taken, &mut values);
                        core::mem::swap(&mut taken, &mut converted);
                    }
                    let definitions_if = is_optional.then_some(&*definitions);
                    let repetitions_if = is_repeated.then_some(&*repetitions);
                    writer.write_batch(&values, definitions_if, repetitions_if).map_err(failed)?;
                    repetitions.clear();
                    definitions.clear();
                    taken.clear();
                    (count, bytes) = (0, 0);
                }
                let Some(ColumnEntry { repetition, definition, value }) = entry else { return Ok(()) };
                count += 1;
                if is_repeated {
                    repetitions.push(repetition);
                }
                if is_optional {
                    definitions.push(definition);
                }
                let Some(value) = value else { continue };
                let size = size(&value);
                if size > MAX_TEXT {
                    return Err(ExportError::TooLarge(
                        "Parquet",
                        "a text length",
                        size as i128,
                        MAX_TEXT as i128,
                    ));
                }
                bytes += size;
                taken.push(value);
            }
        }));
    }

    /// Adds a column of texts with levels.
    pub(super) fn nested_texts(&mut self, entries: impl Iterator<Item = ColumnEntry<&'r str>> + Send + 'r) {
        self.add::<ByteArrayType, _>(
            entries,
            |text| text.len(),
            |one, other| core::ptr::eq(*one, *other),
            to_byte_arrays,
        );
    }

    /// Adds a column of integers with levels.
    pub(super) fn nested_integers(&mut self, entries: impl Iterator<Item = ColumnEntry<i64>> + Send + 'r) {
        self.add::<Int64Type, _>(
            entries,
            |_| 8,
            |one, other| one == other,
            |taken, values| values.extend_from_slice(taken),
        );
    }

    /// Adds a column of 32-bit integers with levels.
    pub(super) fn nested_small(&mut self, entries: impl Iterator<Item = ColumnEntry<i32>> + Send + 'r) {
        self.add::<Int32Type, _>(
            entries,
            |_| 4,
            |one, other| one == other,
            |taken, values| values.extend_from_slice(taken),
        );
    }

    /// Adds a column of texts.
    pub(super) fn texts(&mut self, rows: impl Iterator<Item = Option<&'r str>> + Send + 'r) {
        self.nested_texts(rows.map(ColumnEntry::flat));
    }

    /// Adds a column of integers.
    pub(super) fn integers(&mut self, rows: impl Iterator<Item = Option<i64>> + Send + 'r) {
        self.nested_integers(rows.map(ColumnEntry::flat));
    }

    /// Adds a column of 32-bit integers.
    pub(super) fn small(&mut self, rows: impl Iterator<Item = Option<i32>> + Send + 'r) {
        self.nested_small(rows.map(ColumnEntry::flat));
    }

    /// Adds the columns `ts`, `run_id`, `host` and `service`, the first columns of most tables.
    pub(super) fn run(&mut self, runs: impl Iterator<Item = &'r ParquetRun> + Clone + Send + 'r) {
        self.integers(runs.clone().map(|run| Some(micros(run.time))));
        self.add::<FixedLenByteArrayType, _>(
            runs.clone().map(|run| ColumnEntry::flat(Some(run.id))),
            |_| 16,
            |one, other| one == other,
            |ids, values| {
                let mut last: Option<([u8; 16], FixedLenByteArray)> = None;
                values.extend(ids.iter().map(|id| match &last {
                    Some((known, value)) if known == id => value.clone(),
                    _ => {
                        let value = FixedLenByteArray::from(id.to_vec());
                        last = Some((*id, value.clone()));
                        value
                    }
                }));
            },
        );
        self.texts(runs.clone().map(|run| run.host.as_deref()));
        self.texts(runs.map(|run| Some(&*run.service)));
    }
}

fn encode(
    schema: &SchemaDescriptor,
    properties: &WriterPropertiesPtr,
    index: usize,
    column: EncodeColumn<'_>,
) -> Result<EncodedColumns, ExportError> {
    let mut out = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut out));
    let mut writer = get_column_writer(schema.column(index), properties.clone(), pages);
    column(&mut writer)?;
    let facts = writer.close().map_err(failed)?;
    Ok(EncodedColumns { bytes: Bytes::from(out.into_inner().map_err(failed)?), facts })
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

/// Copies the texts of a batch into one allocation that the values share.
fn to_byte_arrays(texts: &[&str], values: &mut Vec<ByteArray>) {
    let mut all = Vec::with_capacity(texts.iter().map(|text| text.len()).sum());
    texts.iter().for_each(|text| all.extend_from_slice(text.as_bytes()));
    let all = Bytes::from(all);
    let mut start = 0;
    values.extend(texts.iter().map(|text| {
        let end = start + text.len();
        let value = ByteArray::from(all.slice(start..end));
        start = end;
        value
    }));
}

/// Microseconds since 1970. A time that is too late for the format becomes the format's latest time.
pub(super) fn micros(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
