//! The table `stacks`.

use std::io::Write;

use super::options::ParquetOptions;
use super::run::ParquetRun;
use super::stack_ids::stack_ids;
use super::table::{TableLayout, TableWriter};
use crate::error::ExportError;
use crate::stack_profile::{ProfileValue, SampleLabelsId, StackProfile};

const LAYOUT: TableLayout = TableLayout {
    name: "stacks",
    schema: "message stacks {
        required int64 ts (TIMESTAMP(MICROS,true));
        required fixed_len_byte_array(16) run_id;
        optional binary host (STRING);
        required binary service (STRING);
        optional binary version (STRING);
        optional binary process (STRING);
        optional int32 pid (INTEGER(32,false));
        required int64 stack_id (INTEGER(64,false));
        optional binary kind (STRING);
        optional binary reporter (STRING);
        optional binary type (STRING);
        optional int64 blocks;
        optional int64 req;
        optional int64 usable;
        optional int64 alloc_blocks;
        optional int64 alloc_bytes;
    }",
    sorted_by: &["stack_id"],
    deltas: &["ts", "stack_id"],
    prefixes: &[],
    plain: &["blocks", "req", "usable", "alloc_blocks", "alloc_bytes"],
    bloom: &[],
};

/// The columns of amounts. An amount that was not recorded is null.
const AMOUNTS: [ProfileValue; 5] = [
    ProfileValue::LiveBlocks,
    ProfileValue::LiveRequestedBytes,
    ProfileValue::LiveBytes,
    ProfileValue::AllocatedBlocks,
    ProfileValue::AllocatedBytes,
];

struct StackTableRow {
    id: u64,
    labels: SampleLabelsId,
    /// The amounts, in the order of [`AMOUNTS`].
    amounts: [Option<i64>; AMOUNTS.len()],
}

/// Writes the table `stacks`: the blocks of each stack, kind, reporter and type. The table [`frames`](super::frames())
/// has the frames of the stacks.
///
/// Columns: `ts`, `run_id`, `host`, `service`, `version`, `process`, `pid`, `stack_id` (a hash of build ids and
/// offsets, equal on all machines), `kind` (`unreported`, `once`, `twice`), `reporter` (a path of the table `reports`),
/// `type`, `blocks`, `req` and `usable` (live bytes), `alloc_blocks` and `alloc_bytes` (everything that was ever
/// allocated). Amounts that were not recorded are null.
///
/// # Errors
///
/// Returns an error if `out` fails, if a text exceeds 1 GiB, or if a sum exceeds 64 bits.
pub fn stacks(
    run: &ParquetRun,
    stacks: &StackProfile,
    options: &ParquetOptions,
    out: impl Write + Send,
) -> Result<(), ExportError> {
    let ids = stack_ids(stacks);
    let recorded = AMOUNTS.map(|value| stacks.index_of(value));
    let mut rows = Vec::new();
    stacks.without_sizes(|stack, labels, sums| {
        let mut amounts = [None; AMOUNTS.len()];
        for ((amount, column), value) in amounts.iter_mut().zip(recorded).zip(AMOUNTS) {
            let Some(column) = column else { continue };
            let exact = sums[column];
            *amount = Some(i64::try_from(exact).map_err(|_| {
                let most = if exact < 0 { i64::MIN } else { i64::MAX };
                ExportError::TooLarge("Parquet", value.name(), exact, i128::from(most))
            })?);
        }
        rows.push(StackTableRow { id: ids[stack.0 as usize], labels, amounts });
        Ok::<(), ExportError>(())
    })?;
    rows.sort_by_key(|row| (row.id, row.labels));
    let table = TableWriter::new(&LAYOUT, options, rows.len(), [run], out)?;
    table.write(&rows, |columns, rows| {
        let runs = rows.iter().map(|_| run);
        columns.run(runs.clone());
        columns.texts(runs.clone().map(|run| run.version.as_deref()));
        columns.texts(runs.clone().map(|run| run.process.as_deref()));
        columns.small(runs.map(|run| run.pid.map(u32::cast_signed)));
        columns.integers(rows.iter().map(|row| Some(row.id.cast_signed())));
        let labels = rows.iter().map(|row| stacks.labels(row.labels));
        columns.texts(labels.clone().map(|labels| labels.kind));
        columns.texts(labels.clone().map(|labels| labels.reporter));
        columns.texts(labels.map(|labels| labels.type_name));
        for column in 0..AMOUNTS.len() {
            columns.integers(rows.iter().map(move |row| row.amounts[column]));
        }
    })
}
