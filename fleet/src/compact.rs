//! Merges the many small files of a day and service, and writes their buckets.
//!
//! Order of the steps, each of which may be the last one before a kill:
//!
//! 1. The file of buckets gets its name. Readers ignore it until the file of reports with this name exists.
//! 2. The merged file gets its name. It lists its inputs and runs, so readers now ignore the inputs.
//! 3. The inputs are deleted. The next compaction deletes what a killed one left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use futures_util::StreamExt as _;

use crate::buckets::{self, BUCKETS, BUCKETS_FOLDER, OLD_BUCKETS_FOLDERS};
use crate::day::Day;
use crate::error::FleetError;
use crate::folder::{DayRange, RUNS, TableFile, TableFolder, lock, metadata_list};
use crate::life::LifeHash;
use crate::session::{SessionOptions, TABLES, accepts, context, expected_schema, schema_of};
use crate::table::FleetTable;
use crate::table_writer::{FileFacts, TableFileWriter};
use memory_export::parquet::SCHEMA_VERSION;

/// Options of [`compact`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactOptions {
    /// The time now, since 1970. Days that ended an hour before it become daily files, and ended hours hourly files.
    pub now: Duration,
    /// The limits of DataFusion.
    pub session: SessionOptions,
}

impl CompactOptions {
    /// Options with a time.
    pub fn at(now: Duration) -> Self {
        Self { now, session: SessionOptions::default() }
    }
}

/// What [`compact`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// The number of files that were merged, and of files that were written for them.
    pub merged: usize,
    /// The number of compact files.
    pub written: usize,
    /// The number of rows in the compact files.
    pub rows: u64,
    /// The number of deleted files that a killed compaction or collector left.
    pub cleaned: usize,
    /// Files that are not read, with the reason.
    pub warnings: Vec<String>,
}

/// The time after a day's end until which collectors still add files.
const GRACE: Duration = Duration::from_secs(3600);
/// The age of a file with a temporary name after which its writer is dead.
const DEAD: Duration = Duration::from_secs(3600);

/// Merges files. Only one process compacts a folder at a time; readers and collectors go on.
///
/// # Errors
///
/// Returns an error if another process compacts the folder, or if a file cannot be read or written.
pub async fn compact(root: &Path, options: &CompactOptions) -> Result<Compaction, FleetError> {
    let folder = TableFolder::open(root)?;
    let _lock = lock::compacting(root)?;
    let mut done = Compaction::default();
    for table in TABLES {
        let listing = folder.list(table, &DayRange::default())?;
        done.warnings.extend(listing.warnings);
        delete(root, &listing.replaced)?;
        done.cleaned += listing.replaced.len();
        let mut places: BTreeMap<PathBuf, Vec<TableFile>> = BTreeMap::new();
        for file in listing.files {
            let place = file.path.parent().map(Path::to_owned).unwrap_or_default();
            places.entry(place).or_default().push(file);
        }
        for (place, files) in places {
            done.cleaned += delete_dead(&place);
            merge(root, table, &place, &files, options, &mut done).await?;
        }
    }
    write_missing_buckets(&folder, options).await?;
    done.cleaned += delete_orphans(&folder)?;
    Ok(done)
}

async fn merge(
    root: &Path,
    table: &str,
    place: &Path,
    files: &[TableFile],
    options: &CompactOptions,
    done: &mut Compaction,
) -> Result<(), FleetError> {
    let day = files[0].day;
    let day_end = day.plus(1).start();
    let is_over = day_end + GRACE <= options.now;
    let hour = options.now.as_secs() / 3600 * 3600;
    let mut inputs: Vec<TableFile> = Vec::new();
    let mut schema = expected_schema(table);
    for file in files {
        let is_ready = match is_over {
            true => !file.name().starts_with("daily-"),
            false => !file.is_compact() && ended_before(file, hour),
        };
        match mergeable(file, schema.as_ref()) {
            Ok(found) if is_ready => {
                schema.get_or_insert(found);
                inputs.push(file.clone());
            }
            Ok(_) => {}
            Err(reason) => done.warnings.push(format!("{}: is not compacted: {reason}", file.path.display())),
        }
    }
    let Some(schema) = schema else { return Ok(()) };
    // One file of a day that is not over would only be renamed.
    if inputs.is_empty() || (!is_over && inputs.len() < 2) {
        return Ok(());
    }
    let kind = if is_over { "daily" } else { "hourly" };
    let output = place.join(format!("{kind}-{}.parquet", name_of(&inputs)));
    let context = context(&options.session)?;
    let duplicates = register(&context, &schema, &inputs, files)?;
    if table == "reports" {
        write_buckets(root, &context, &inputs, &output).await?;
    }
    // A file of an earlier version has its run as its name, so it keeps the run only if it is written again.
    if let ([input], false) = (&inputs[..], duplicates)
        && lists_runs(input)
    {
        // The file is sorted already and lists its runs.
        let _lock = lock::replacing(root)?;
        fs::rename(&input.path, &output).map_err(|error| FleetError::at(&input.path, error))?;
        done.merged += 1;
        done.written += 1;
        return Ok(());
    }
    let runs: BTreeSet<String> = inputs.iter().flat_map(runs_of).collect();
    let runs = runs.into_iter().collect::<Vec<_>>().join(" ");
    let names = inputs.iter().map(TableFile::name).collect::<Vec<_>>().join(" ");
    let columns: Vec<String> = schema.fields().iter().map(|field| format!("\"{}\"", field.name())).collect();
    let order = match table {
        "reports" => " ORDER BY service, process, path, ts, run_id",
        "warnings" => " ORDER BY service, ts, run_id",
        "stacks" | "frames" => " ORDER BY stack_id",
        _ => "",
    };
    let sql = format!("SELECT {} FROM inputs{order}", columns.join(", "));
    let facts = FileFacts { runs: &runs, inputs: &names };
    done.rows += write(&context, &sql, &output, table, &schema, facts).await?;
    delete(root, &inputs)?;
    done.merged += inputs.len();
    done.written += 1;
    Ok(())
}

/// The columns of a file, if a merged file with the known columns keeps all that the file has.
fn mergeable(file: &TableFile, known: Option<&Schema>) -> Result<Schema, String> {
    let version = metadata_list(&file.path, &["memory_report.schema"])?.concat().concat();
    if version.parse().is_ok_and(|version: u64| version > u64::from(SCHEMA_VERSION)) {
        return Err(format!("a later version of the exporter wrote it (schema {version})"));
    }
    let found = schema_of(&file.path)?;
    if let Some(known) = known {
        accepts(known, &found)?;
        if let Some(field) = found.fields().iter().find(|field| known.field_with_name(field.name()).is_err())
        {
            return Err(format!("the column {} would be lost", field.name()));
        }
    }
    Ok(found)
}

/// Writes the buckets of the table `inputs` for a compact file of reports.
async fn write_buckets(
    root: &Path,
    context: &SessionContext,
    inputs: &[TableFile],
    reports: &Path,
) -> Result<(), FleetError> {
    let place = reports.strip_prefix(root.join("reports")).unwrap_or(reports);
    let path = root.join(BUCKETS_FOLDER).join(place);
    let sql = format!(
        "{} ORDER BY service, path, bucket, life",
        buckets::query("inputs", inputs.iter().any(buckets::is_repeated))
    );
    write(context, &sql, &path, BUCKETS, &buckets::schema(), FileFacts::default()).await?;
    Ok(())
}

/// Writes the buckets of compact files that have none: an earlier version computed them in another way.
async fn write_missing_buckets(folder: &TableFolder, options: &CompactOptions) -> Result<(), FleetError> {
    let reports = folder.list("reports", &DayRange::default())?;
    let (_, without) = buckets::pairs(&reports, &folder.list(BUCKETS_FOLDER, &DayRange::default())?);
    let Some(schema) = expected_schema("reports") else { return Ok(()) };
    for file in without.iter().filter(|file| file.is_compact()) {
        let context = context(&options.session)?;
        context.register_table("inputs", Arc::new(FleetTable::new(&schema, core::slice::from_ref(file))?))?;
        write_buckets(folder.root(), &context, core::slice::from_ref(file), &file.path).await?;
    }
    Ok(())
}

/// Registers the view `inputs`: the rows of the files, each run once. Returns whether a run is in two files.
fn register(
    context: &SessionContext,
    schema: &Schema,
    inputs: &[TableFile],
    all: &[TableFile],
) -> Result<bool, FleetError> {
    // The first file with a run keeps it. Compact files that stay keep theirs.
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for file in all.iter().filter(|file| file.is_compact() && !inputs.contains(file)) {
        seen.extend(runs_of(file));
    }
    let (mut clean, mut parts, mut left_out) = (Vec::new(), Vec::new(), false);
    for (index, file) in inputs.iter().enumerate() {
        let (again, new): (Vec<String>, Vec<String>) =
            runs_of(file).into_iter().partition(|run| seen.contains(run));
        let is_all_again = new.is_empty();
        seen.extend(new);
        // The table `frames` has no runs: a file is left out if other files have all of its runs.
        let has_runs = schema.field_with_name("run_id").is_ok();
        if again.is_empty() || !(has_runs || is_all_again) {
            clean.push(file.clone());
            continue;
        }
        if is_all_again {
            left_out = true;
            continue;
        }
        let name = format!("input_{index}");
        context.register_table(&name, Arc::new(FleetTable::new(schema, core::slice::from_ref(file))?))?;
        let ids: Vec<String> = again.iter().map(|run| format!("X'{run}'")).collect();
        parts.push(format!("SELECT * FROM {name} WHERE run_id NOT IN ({})", ids.join(", ")));
    }
    context.register_table("clean_inputs", Arc::new(FleetTable::new(schema, &clean)?))?;
    let has_duplicates = left_out || !parts.is_empty();
    parts.insert(0, "SELECT * FROM clean_inputs".to_owned());
    let view = format!("CREATE VIEW inputs AS {}", parts.join(" UNION ALL "));
    futures_util::FutureExt::now_or_never(context.sql(&view)).expect("a view is made without reading")?;
    Ok(has_duplicates)
}

/// The ids of a file's runs. A file of an earlier version has one run, its name.
fn runs_of(file: &TableFile) -> Vec<String> {
    let mut runs = metadata_list(&file.path, &[RUNS]).unwrap_or_default().concat();
    let is_id = |name: &str| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    // The ids become a part of a query.
    runs.retain(|run| is_id(run));
    match runs.is_empty() && is_id(file.name()) {
        true => vec![file.name().to_owned()],
        false => runs,
    }
}

/// Whether a file's metadata lists its runs.
fn lists_runs(file: &TableFile) -> bool {
    metadata_list(&file.path, &[RUNS]).is_ok_and(|lists| !lists.concat().is_empty())
}

async fn write(
    context: &SessionContext,
    sql: &str,
    path: &Path,
    table: &str,
    schema: &Schema,
    facts: FileFacts<'_>,
) -> Result<u64, FleetError> {
    let mut stream = context.sql(sql).await?.execute_stream().await?;
    // The query's own schema says nullable more often than the table.
    let schema = Arc::new(crate::table::with_views(schema));
    let mut file = TableFileWriter::create(path, table, &schema, facts)?;
    while let Some(batch) = stream.next().await {
        file.write(&with_types(&batch?, &schema)?)?;
    }
    file.finish()
}

/// A query has larger types than the table, such as 64 bits for a number with 32.
fn with_types(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, DataFusionError> {
    let columns =
        batch.columns().iter().zip(schema.fields()).map(|(column, field)| cast(column, field.data_type()));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// A name that depends on the inputs only, so that a compaction after a kill replaces what the killed one wrote.
fn name_of(inputs: &[TableFile]) -> String {
    let mut hash = LifeHash::new();
    inputs.iter().for_each(|file| hash.text(file.name()));
    format!("{:016x}", hash.0)
}

/// Whether all rows of a file are older than this second, by the file's statistics.
fn ended_before(file: &TableFile, second: u64) -> bool {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::file::statistics::Statistics;
    let Some(reader) = fs::File::open(&file.path).ok().and_then(|file| SerializedFileReader::new(file).ok())
    else {
        return false;
    };
    let limit = i64::try_from(second).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    reader.metadata().row_groups().iter().all(|group| {
        let ts = group.columns().iter().find(|column| column.column_path().string() == "ts");
        match ts.and_then(|ts| ts.statistics()) {
            Some(Statistics::Int64(values)) => values.max_opt().is_some_and(|last| *last < limit),
            // The table `frames` has no times.
            _ => ts.is_none(),
        }
    })
}

fn delete(root: &Path, files: &[TableFile]) -> Result<(), FleetError> {
    if files.is_empty() {
        return Ok(());
    }
    let _lock = lock::replacing(root)?;
    for file in files {
        match fs::remove_file(&file.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(FleetError::at(&file.path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Deletes files with temporary names whose writer is dead.
fn delete_dead(place: &Path) -> usize {
    let is_dead = |path: &Path| {
        let changed = fs::metadata(path).and_then(|about| about.modified());
        changed.is_ok_and(|changed| SystemTime::now().duration_since(changed).is_ok_and(|age| age > DEAD))
    };
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let dead = entries.filter(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with(memory_report::new_file::INCOMPLETE) && is_dead(&entry.path())
    });
    dead.filter(|entry| fs::remove_file(entry.path()).is_ok()).count()
}

/// Deletes files of buckets whose file of reports does not exist.
fn delete_orphans(folder: &TableFolder) -> Result<usize, FleetError> {
    let reports = folder.list("reports", &DayRange::default())?;
    let key = |file: &TableFile| (file.day, file.service_folder.clone(), file.name().to_owned());
    let known: BTreeSet<(Day, String, String)> = reports.files.iter().map(key).collect();
    let buckets = folder.list(BUCKETS_FOLDER, &DayRange::default())?;
    let all = buckets.files.into_iter().chain(buckets.replaced);
    let mut orphans: Vec<TableFile> = all.filter(|file| !known.contains(&key(file))).collect();
    for old in OLD_BUCKETS_FOLDERS {
        let listing = folder.list(old, &DayRange::default())?;
        orphans.extend(listing.files.into_iter().chain(listing.replaced));
    }
    delete(folder.root(), &orphans)?;
    Ok(orphans.len())
}
