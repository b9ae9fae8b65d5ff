//! The table `buckets`: the mean of each path of a process in 6 hours. All questions read this table.
//!
//! `compact` writes a file of buckets for each compact file of reports, under the same name. For all other files of
//! reports, the query computes the buckets.
//!
//! Several reports of a run may have the same path. Their sum counts as one sample, as in about:memory.
//!
//! A process may have several rows for a bucket and path, one from each file. So questions weigh `mean` by `samples`.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::and;
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::folder::{TableFile, TableListing};

/// The name of the table.
pub const BUCKETS: &str = "buckets";

/// The folder of the table's files. The folder gets a new name when the calculation changes: `compact` then writes the
/// files again.
pub(crate) const BUCKETS_FOLDER: &str = "buckets-v2";

/// Folders of earlier calculations, whose files `compact` deletes.
pub(crate) const OLD_BUCKETS_FOLDERS: [&str; 1] = ["buckets"];

/// The length of a bucket in seconds.
pub const BUCKET_SECONDS: u64 = 6 * 3600;

/// The columns of the table's files.
pub(crate) fn schema() -> Schema {
    let time = || DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")));
    let field = |name: &str, of: DataType| Field::new(name, of, false);
    Schema::new(vec![
        field("bucket", time()),
        field("service", DataType::Utf8),
        field("host", DataType::Utf8),
        field("process", DataType::Utf8),
        field("pid", DataType::UInt32),
        field("life", DataType::UInt64),
        field("version", DataType::Utf8),
        field("path", DataType::Utf8),
        field("kind", DataType::Utf8),
        field("units", DataType::Utf8),
        field("samples", DataType::Int64),
        field("mean", DataType::Float64),
        field("lowest", DataType::Int64),
        field("highest", DataType::Int64),
        field("first_ts", time()),
        field("last_ts", time()),
    ])
}

/// The query that computes buckets from a table of reports. With `is_repeated`, reports of a run may have the same path;
/// the query then takes several times as long.
pub(crate) fn query(reports: &str, is_repeated: bool) -> String {
    let (rows, life) = match is_repeated {
        false => (reports.to_owned(), "life_id(service, host, process, pid, started)"),
        true => (
            format!(
                "(SELECT run_id, ts, service, host, process, pid, life_id(service, host, process, pid, started) AS life,
                    version, path, units, min(kind) AS kind, sum(amount) AS amount
                FROM {reports} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)"
            ),
            "life",
        ),
    };
    format!(
        "SELECT arrow_cast(date_bin(INTERVAL '6 hours', ts), 'Timestamp(Microsecond, Some(\"UTC\"))') AS bucket, service,
            coalesce(host, '') AS host, process, coalesce(pid, 0) AS pid, {life} AS life,
            coalesce(version, '') AS version, path, min(kind) AS kind, units, count(*) AS samples,
            avg(CAST(amount AS DOUBLE)) AS mean, min(amount) AS lowest, max(amount) AS highest,
            min(ts) AS first_ts, max(ts) AS last_ts
        FROM {rows} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 10"
    )
}

/// The query that returns stacks in the columns of reports. A path is made of the functions of a stack, so that it is the
/// same in all versions. A stack without functions has its id as its path, in parentheses: the id differs between builds.
pub(crate) fn stacks_as_reports(has_frames: bool) -> String {
    let columns = "run_id, ts, stacks.service, host, coalesce(process, '') AS process, pid,
        CAST(NULL AS TIMESTAMP) AS started, version, 'heap' AS kind, 'bytes' AS units,
        coalesce(usable, req, 0) AS amount";
    let id = "concat('(', to_hex(stacks.stack_id), ')')";
    if !has_frames {
        return format!("SELECT {columns}, {id} AS path FROM stacks");
    }
    format!(
        "SELECT {columns}, coalesce(calls, {id}) AS path
        FROM stacks LEFT JOIN (
            SELECT stack_id AS id, min(stack_path(frames)) AS calls FROM frames GROUP BY stack_id
        ) ON id = stacks.stack_id"
    )
}

/// Whether the path of a stack is only its id, because the stack has no functions.
pub(crate) fn is_id(path: &str) -> bool {
    let id = path.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    id.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether a file may have several reports of a run with the same path. Such reports are neighbors, because files are
/// sorted by path and run.
pub(crate) fn is_repeated(file: &TableFile) -> bool {
    neighbors_are_equal(&file.path).unwrap_or(true)
}

/// `None` if the file is not sorted, or if it cannot be read: the query then reports the error.
fn neighbors_are_equal(path: &Path) -> Option<bool> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).ok()?).ok()?;
    let columns = builder.parquet_schema().columns();
    let is_sorted = builder.metadata().row_groups().iter().all(|group| {
        let sorting = group.sorting_columns().map(Vec::as_slice).unwrap_or_default();
        let names = sorting.iter().filter_map(|by| columns.get(usize::try_from(by.column_idx).ok()?));
        names.take(4).map(|column| column.name()).eq(["service", "process", "path", "ts"])
    });
    if !is_sorted {
        return None;
    }
    let names = ["run_id", "path", "process"];
    let mask = ProjectionMask::columns(builder.parquet_schema(), names);
    let mut last: Option<RecordBatch> = None;
    for batch in builder.with_projection(mask).with_batch_size(1 << 14).build().ok()? {
        let batch = batch.ok()?;
        let Some(end) = batch.num_rows().checked_sub(1) else { continue };
        let is_equal = |one: &RecordBatch, other: &RecordBatch| {
            let mut equal: Option<BooleanArray> = None;
            for name in names {
                let (one, other) = (one.column_by_name(name)?, other.column_by_name(name)?);
                let same = eq(one, other).ok()?;
                let all = match equal {
                    Some(equal) => and(&equal, &same).ok()?,
                    None => same,
                };
                if all.true_count() == 0 {
                    return Some(false);
                }
                equal = Some(all);
            }
            Some(true)
        };
        let is_border_equal = last.is_some_and(|last| is_equal(&last, &batch.slice(0, 1)) != Some(false));
        if is_border_equal || is_equal(&batch.slice(0, end), &batch.slice(1, end))? {
            return Some(true);
        }
        last = Some(batch.slice(end, 1));
    }
    Some(false)
}

/// Splits the reports into the files that have a file of buckets, and the others: the files of buckets, and the files
/// of reports without one.
pub(crate) fn pairs(reports: &TableListing, buckets: &TableListing) -> (Vec<TableFile>, Vec<TableFile>) {
    let key = |file: &TableFile| (file.day, file.service_folder.clone(), file.name().to_owned());
    let all: Vec<&TableFile> = buckets.files.iter().chain(&buckets.replaced).collect();
    let known: HashSet<_> = all.iter().map(|file| key(file)).collect();
    let (with, without): (Vec<TableFile>, Vec<TableFile>) =
        reports.files.iter().cloned().partition(|file| file.is_compact() && known.contains(&key(file)));
    let with: HashSet<_> = with.iter().map(key).collect();
    (all.into_iter().filter(|file| with.contains(&key(file))).cloned().collect(), without)
}
