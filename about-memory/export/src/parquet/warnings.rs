//! The table `warnings`.

use std::io::Write;

use memory_report::{ReportSet, Warning};

use super::options::ParquetOptions;
use super::run::ParquetRun;
use super::table::{TableLayout, TableWriter};
use crate::error::ExportError;

const LAYOUT: TableLayout = TableLayout {
    name: "warnings",
    schema: "message warnings {
        required int64 ts (TIMESTAMP(MICROS,true));
        required fixed_len_byte_array(16) run_id;
        optional binary host (STRING);
        required binary service (STRING);
        required binary kind (STRING);
        required binary subject (STRING);
        required binary text (STRING);
    }",
    sorted_by: &["service", "ts"],
    deltas: &["ts"],
    prefixes: &[],
    plain: &[],
    bloom: &[],
};

/// Writes the table `warnings`: the faults of reports and reporters.
///
/// Columns: `ts`, `run_id`, `host`, `service`, `kind` (`report-dropped`, `timed-out` ...), `subject` (the reporter or
/// process), `text`.
///
/// # Errors
///
/// Returns an error if `out` fails, or if a text exceeds 1 GiB.
pub fn warnings(
    runs: &[(&ParquetRun, &ReportSet)],
    options: &ParquetOptions,
    out: impl Write + Send,
) -> Result<(), ExportError> {
    let mut rows: Vec<(&ParquetRun, &Warning, String)> = Vec::new();
    for (run, set) in runs {
        rows.extend(set.warnings().iter().map(|warning| (*run, warning, warning.kind.to_string())));
    }
    rows.sort_by_key(|(run, ..)| (&run.service, run.time));
    let table = TableWriter::new(&LAYOUT, options, rows.len(), runs.iter().map(|(run, _)| *run), out)?;
    table.write(&rows, |columns, rows| {
        columns.run(rows.iter().map(|(run, ..)| *run));
        columns.texts(rows.iter().map(|(.., kind)| Some(&**kind)));
        columns.texts(rows.iter().map(|(_, warning, _)| Some(&*warning.subject)));
        columns.texts(rows.iter().map(|(_, warning, _)| Some(&*warning.message)));
    })
}
