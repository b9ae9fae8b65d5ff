//! A session: DataFusion with the tables of a folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use memory_export::parquet::{ParquetOptions, reports};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::buckets::{self, BUCKETS, BUCKETS_FOLDER};
use crate::engine::QueryEngine;
use crate::error::FleetError;
use crate::folder::{DayRange, TableFile, TableFolder, TableListing};
use crate::life::life_id;
use crate::stack_path::stack_path;
use crate::table::FleetTable;

/// The tables that `about-memory export --append-to` and `memory-fleet` write.
pub const TABLES: [&str; 5] = ["reports", "warnings", "stacks", "frames", "census"];

/// What questions are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionSubject {
    /// The paths of reports.
    #[default]
    Reports,
    /// The stacks of profiles, dumps and recordings: a path is the innermost functions of a stack, with a hash of all.
    Stacks,
}

/// Limits of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionOptions {
    /// The maximum number of bytes for sorting, grouping and joining. Larger amounts go to temporary files.
    pub memory: usize,
    /// The number of threads; 0 stands for one for each processor.
    pub threads: usize,
    /// The days to read.
    pub days: DayRange,
    /// The engine that runs the queries. Other work, such as compaction, always runs in this process.
    pub engine: QueryEngine,
    /// What questions are about.
    pub subject: QuestionSubject,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            memory: 2 << 30,
            threads: 0,
            days: DayRange::default(),
            engine: QueryEngine::Local,
            subject: QuestionSubject::Reports,
        }
    }
}

/// DataFusion with the tables of a folder.
pub struct FleetSession {
    context: SessionContext,
    folder: TableFolder,
    subject: QuestionSubject,
    /// The files of the subject.
    measured: Vec<TableFile>,
    reports: TableListing,
    warnings: Vec<String>,
    /// All files of all tables.
    files: Vec<PathBuf>,
}

impl core::fmt::Debug for FleetSession {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FleetSession").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl FleetSession {
    /// Opens the tables of a folder. Files that cannot be read are left out, with a warning.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be read.
    pub fn open(root: &Path, options: &SessionOptions) -> Result<Self, FleetError> {
        let folder = TableFolder::open(root)?;
        let context = engine_context(options)?;
        let (mut warnings, mut reports, mut files) = (Vec::new(), TableListing::default(), Vec::new());
        let (mut stacks, mut has_frames) = (Vec::new(), false);
        for table in TABLES {
            let mut listing = folder.list(table, &options.days)?;
            let schema = usable_files(table, &mut listing);
            warnings.append(&mut listing.warnings);
            files.extend(listing.files.iter().map(|file| file.path.clone()));
            if let Some(schema) = schema {
                context.register_table(table, Arc::new(FleetTable::new(&schema, &listing.files)?))?;
            }
            match table {
                "reports" => reports = listing,
                "stacks" => stacks = listing.files,
                "frames" => has_frames = !listing.files.is_empty(),
                _ => {}
            }
        }
        let subject = options.subject;
        let measured = match subject {
            QuestionSubject::Reports => reports.files.clone(),
            QuestionSubject::Stacks => stacks,
        };
        let mut session = Self { context, folder, subject, measured, reports, warnings, files };
        match subject {
            QuestionSubject::Reports => session.register_buckets(&options.days)?,
            QuestionSubject::Stacks if session.measured.is_empty() => {}
            QuestionSubject::Stacks => {
                session.view("stack_reports", &buckets::stacks_as_reports(has_frames))?;
                session.view(BUCKETS, &buckets::query("stack_reports", true))?;
            }
        }
        Ok(session)
    }

    fn register_buckets(&mut self, days: &DayRange) -> Result<(), FleetError> {
        let mut listing = self.folder.list(BUCKETS_FOLDER, days)?;
        usable_files(BUCKETS, &mut listing);
        let (ready, without) = buckets::pairs(&self.reports, &listing);
        self.files.extend(ready.iter().map(|file| file.path.clone()));
        let (repeated, without): (Vec<_>, Vec<_>) = without.into_iter().partition(buckets::is_repeated);
        self.context
            .register_table("ready_buckets", Arc::new(FleetTable::new(&buckets::schema(), &ready)?))?;
        self.context
            .register_table("open_reports", Arc::new(FleetTable::new(&report_schema(), &without)?))?;
        self.context
            .register_table("repeated_reports", Arc::new(FleetTable::new(&report_schema(), &repeated)?))?;
        let columns: Vec<String> =
            buckets::schema().fields().iter().map(|field| field.name().clone()).collect();
        let mut view = format!("SELECT {} FROM ready_buckets", columns.join(", "));
        for (table, files, is_repeated) in
            [("open_reports", &without, false), ("repeated_reports", &repeated, true)]
        {
            if !files.is_empty() {
                view.push_str(&format!(" UNION ALL {}", buckets::query(table, is_repeated)));
            }
        }
        self.view(BUCKETS, &view)
    }

    fn view(&self, name: &str, query: &str) -> Result<(), FleetError> {
        futures_util::FutureExt::now_or_never(self.context.sql(&format!("CREATE VIEW {name} AS {query}")))
            .expect("a view is made without reading")?;
        Ok(())
    }

    /// The files that questions are about: of the table `reports`, or of the table `stacks`.
    pub fn measured(&self) -> &[TableFile] {
        &self.measured
    }

    /// What questions are about.
    pub fn subject(&self) -> QuestionSubject {
        self.subject
    }

    /// The folder of the tables.
    pub fn root(&self) -> &Path {
        self.folder.root()
    }

    /// The files and folders that are not read, with the reasons.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether a file was deleted since the tables were opened: a compaction has replaced it. Open the folder again.
    pub fn is_stale(&self) -> bool {
        self.files.iter().any(|file| !file.exists())
    }

    /// DataFusion's own session.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Runs a query that only reads.
    ///
    /// # Errors
    ///
    /// Returns DataFusion's error.
    pub async fn query(&self, sql: &str) -> Result<Vec<RecordBatch>, FleetError> {
        self.first_rows(sql, None).await
    }

    /// The first rows of a query. Other rows are not computed where that is possible, and never in memory.
    pub(crate) async fn first_rows(
        &self,
        sql: &str,
        most: Option<usize>,
    ) -> Result<Vec<RecordBatch>, FleetError> {
        let options = datafusion::execution::context::SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let mut frame = self.context.sql_with_options(sql, options).await?;
        // `EXPLAIN` and `DESCRIBE` have no limit.
        let has_limit = !matches!(
            frame.logical_plan(),
            LogicalPlan::Explain(_) | LogicalPlan::DescribeTable(_) | LogicalPlan::Analyze(_)
        );
        if let Some(most) = most.filter(|_| has_limit) {
            frame = frame.limit(0, Some(most))?;
        }
        let schema = Arc::new(frame.schema().as_arrow().clone());
        let mut batches = frame.collect().await?;
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(schema));
        }
        Ok(batches)
    }
}

/// The context of the engine.
fn engine_context(options: &SessionOptions) -> Result<SessionContext, FleetError> {
    let local = context(options)?;
    match &options.engine {
        QueryEngine::Local => Ok(local),
        #[cfg(feature = "ballista")]
        QueryEngine::Ballista(scheduler) => {
            let connected = crate::cluster::connected(scheduler, local.state());
            futures_util::FutureExt::now_or_never(connected).expect("the first query connects")
        }
        #[cfg(not(feature = "ballista"))]
        engine => {
            Err(FleetError::Usage(format!("{engine}: this program was built without the feature ballista")))
        }
    }
}

/// DataFusion with limits and without tables.
pub(crate) fn context(options: &SessionOptions) -> Result<SessionContext, FleetError> {
    let mut config = SessionConfig::new().with_information_schema(true);
    if options.threads > 0 {
        config = config.with_target_partitions(options.threads);
    }
    let parquet = &mut config.options_mut().execution.parquet;
    parquet.pushdown_filters = true;
    parquet.reorder_filters = true;
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(options.memory)))
        .build_arc()?;
    let context = SessionContext::new_with_config_rt(config, runtime);
    context.register_udf(life_id());
    context.register_udf(stack_path());
    Ok(context)
}

/// The columns of the table `reports`, as this version of `memory-export` writes them.
pub(crate) fn report_schema() -> Schema {
    let mut file = Vec::new();
    reports(&[], &ParquetOptions::new(), &mut file).expect("an empty table can be written to memory");
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(file));
    Schema::new(reader.expect("memory-export writes Parquet").schema().fields().clone())
}

/// The columns that the files of a table need, if this crate knows them.
pub(crate) fn expected_schema(table: &str) -> Option<Schema> {
    match table {
        "reports" => Some(report_schema()),
        BUCKETS => Some(buckets::schema()),
        _ => None,
    }
}

/// Moves files whose columns have other types to the warnings. Returns the table's columns: the expected ones, or those
/// of the last file.
fn usable_files(table: &str, listing: &mut TableListing) -> Option<Schema> {
    let mut expected = expected_schema(table);
    let mut files = core::mem::take(&mut listing.files);
    files.reverse();
    files.retain(|file| {
        // Compact files were checked when they were written, and their metadata is large.
        if file.is_compact() && expected.is_some() {
            return true;
        }
        let checked = schema_of(&file.path).and_then(|schema| match &expected {
            Some(expected) => accepts(expected, &schema),
            None => {
                expected = Some(schema);
                Ok(())
            }
        });
        if let Err(reason) = &checked {
            listing.warnings.push(format!("{}: is not read: {reason}", file.path.display()));
        }
        checked.is_ok()
    });
    files.reverse();
    listing.files = files;
    expected
}

/// The columns of a file.
pub(crate) fn schema_of(path: &Path) -> Result<Schema, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
    Ok(Schema::new(reader.schema().fields().clone()))
}

/// Returns the first column that a query could not read.
pub(crate) fn accepts(expected: &Schema, found: &Schema) -> Result<(), String> {
    use datafusion::arrow::datatypes::DataType::{Dictionary, LargeUtf8, Map, Timestamp, Utf8, Utf8View};
    for field in expected.fields() {
        let Ok(column) = found.field_with_name(field.name()) else {
            if field.is_nullable() {
                continue;
            }
            return Err(format!("it has no column {}", field.name()));
        };
        let fits = match (column.data_type(), field.data_type()) {
            (Utf8 | LargeUtf8 | Utf8View | Dictionary(..), Utf8) | (Map(..), Map(..)) => true,
            (Timestamp(_, found), Timestamp(_, expected)) => found.is_some() == expected.is_some(),
            (found, expected) => found == expected,
        };
        if !fits {
            return Err(format!(
                "its column {} is {}, not {}",
                field.name(),
                column.data_type(),
                field.data_type()
            ));
        }
    }
    Ok(())
}
