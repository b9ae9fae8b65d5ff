//! A table for DataFusion: a list of Parquet files, with the day as the column `date`.
//!
//! DataFusion's own listing reads every file in a folder. This table reads the files of a [`TableListing`], so that a
//! run in two files counts once. A column that a file lacks is null.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result, ScalarValue};
#[cfg(feature = "ballista")]
use datafusion::common::{DataFusionError, exec_err};
use datafusion::datasource::file_format::FileFormat as _;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::object_store::path::Path as ObjectPath;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;

use crate::error::FleetError;
use crate::folder::TableFile;

/// The files of a table with their common schema.
#[derive(Debug)]
pub(crate) struct FleetTable {
    schema: TableSchema,
    files: Vec<PartitionedFile>,
}

impl FleetTable {
    /// Makes a table of files. `schema` has the columns of the files.
    pub(crate) fn new(schema: &Schema, files: &[TableFile]) -> Result<Self, FleetError> {
        let date: FieldRef = Arc::new(Field::new("date", DataType::Date32, false));
        let schema =
            TableSchema::builder(Arc::new(with_views(schema))).with_table_partition_cols(vec![date]).build();
        let files = files.iter().map(partitioned).collect::<Result<_, _>>()?;
        Ok(Self { schema, files })
    }
}

/// A file in the bytes of a table: its place, its size and its day.
#[cfg(feature = "ballista")]
type EncodedFile = (String, u64, i32);

#[cfg(feature = "ballista")]
impl FleetTable {
    /// Writes the list of files.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) -> Result<()> {
        let day = |file: &PartitionedFile| match file.partition_values.first() {
            Some(ScalarValue::Date32(Some(day))) => *day,
            _ => 0,
        };
        let files: Vec<EncodedFile> = self
            .files
            .iter()
            .map(|file| (file.object_meta.location.to_string(), file.object_meta.size, day(file)))
            .collect();
        serde_json::to_writer(bytes, &files).map_err(|error| DataFusionError::External(Box::new(error)))
    }

    /// Reads the list of files of a table with these columns. The last column is the day.
    pub(crate) fn decode(bytes: &[u8], schema: &Schema) -> Result<Self> {
        let files: Vec<EncodedFile> =
            serde_json::from_slice(bytes).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let Some((date, columns)) = schema.fields().split_last() else {
            return exec_err!("a table without columns cannot be read");
        };
        let files = files
            .into_iter()
            .map(|(place, size, day)| Ok(placed(ObjectPath::parse(place)?, size, day)))
            .collect::<Result<_, object_store::path::Error>>()
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        let schema = TableSchema::builder(Arc::new(Schema::new(columns.to_vec())))
            .with_table_partition_cols(vec![Arc::clone(date)])
            .build();
        Ok(Self { schema, files })
    }
}

fn placed(place: ObjectPath, size: u64, day: i32) -> PartitionedFile {
    // `new` parses the text of a place, and so decodes `%2F`.
    let mut partitioned = PartitionedFile::new("", size);
    partitioned.object_meta.location = place;
    partitioned.with_partition_values(vec![ScalarValue::Date32(Some(day))])
}

fn partitioned(file: &TableFile) -> Result<PartitionedFile, FleetError> {
    let path = std::path::absolute(&file.path).map_err(|error| FleetError::at(&file.path, error))?;
    let place = ObjectPath::from_absolute_path(&path).map_err(|error| FleetError::at(&path, error))?;
    Ok(placed(place, file.size, file.day.0))
}

/// Texts as views: DataFusion groups and compares views faster.
pub(crate) fn with_views(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => {
            Arc::new(Field::new(field.name(), DataType::Utf8View, field.is_nullable()))
        }
        _ => Arc::clone(field),
    });
    Schema::new(fields.collect::<Vec<_>>())
}

#[async_trait]
impl TableProvider for FleetTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema.table_schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // The scan skips files, row groups and pages. The plan's own filter decides about rows.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.files.is_empty() {
            let schema = match projection {
                Some(columns) => Arc::new(self.schema().project(columns)?),
                None => self.schema(),
            };
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let mut source = ParquetSource::new(self.schema.clone());
        if let Some(filter) = conjunction(filters.to_vec()) {
            let schema = DFSchema::try_from(self.schema())?;
            source = source.with_predicate(state.create_physical_expr(filter, &schema)?);
        }
        let format = ParquetFormat::new().with_options(state.table_options().parquet.clone());
        let groups = FileGroup::new(self.files.clone()).split_files(state.config().target_partitions());
        let scan = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            // A limit of rows before the filter would lose rows.
            .with_limit(limit.filter(|_| filters.is_empty()))
            .build();
        format.create_physical_plan(state, scan).await
    }
}
