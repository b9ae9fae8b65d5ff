//! The table `census`.

use std::io::Write;

use super::census_row::CensusRow;
use super::columns::ColumnEntry;
use super::options::ParquetOptions;
use super::run::ParquetRun;
use super::table::{TableLayout, TableWriter};
use crate::error::ExportError;

const LAYOUT: TableLayout = TableLayout {
    name: "census",
    schema: "message census {
        required int64 ts (TIMESTAMP(MICROS,true));
        required fixed_len_byte_array(16) run_id;
        optional binary host (STRING);
        required binary service (STRING);
        required binary by (STRING);
        required group group (LIST) {
            repeated group list {
                required binary element (STRING);
            }
        }
        required int64 bytes;
        required int64 count;
        optional int64 retained;
    }",
    sorted_by: &["by"],
    deltas: &["ts"],
    prefixes: &[],
    plain: &["bytes", "count", "retained"],
    bloom: &[],
};

/// Writes the table `census`.
///
/// Columns: `ts`, `run_id`, `host`, `service`, `by`, `group` (a list of names), `bytes`, `count`, `retained`. Groups do
/// not overlap, so the sum of `bytes` over one run and `by` is the sum of the census.
///
/// # Errors
///
/// Returns an error if `out` fails, or if a text exceeds 1 GiB.
pub fn census(
    run: &ParquetRun,
    rows: &[CensusRow],
    options: &ParquetOptions,
    out: impl Write + Send,
) -> Result<(), ExportError> {
    let mut rows: Vec<&CensusRow> = rows.iter().collect();
    rows.sort();
    let table = TableWriter::new(&LAYOUT, options, rows.len(), [run], out)?;
    table.write(&rows, |columns, rows| {
        columns.run(rows.iter().map(|_| run));
        columns.texts(rows.iter().map(|row| Some(&*row.by)));
        columns.nested_texts(rows.iter().flat_map(|row| {
            let none =
                row.group.is_empty().then_some(ColumnEntry { repetition: 0, definition: 0, value: None });
            let names = row.group.iter().enumerate().map(|(index, name)| ColumnEntry {
                repetition: i16::from(index > 0),
                definition: 1,
                value: Some(&**name),
            });
            none.into_iter().chain(names)
        }));
        columns.integers(rows.iter().map(|row| Some(row.bytes)));
        columns.integers(rows.iter().map(|row| Some(row.count)));
        columns.integers(rows.iter().map(|row| row.retained));
    })
}
