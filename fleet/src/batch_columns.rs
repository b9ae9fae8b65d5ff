//! The columns of a query's result as plain values.

use datafusion::arrow::array::{
    Array as _, AsArray as _, Float64Array, Int64Array, RecordBatch, StringViewArray, UInt64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use datafusion::error::DataFusionError;

use crate::error::FleetError;

/// A batch of a query that this crate wrote, so each column exists.
pub(crate) struct BatchColumns<'b>(pub(crate) &'b RecordBatch);

impl BatchColumns<'_> {
    fn column(
        &self,
        name: &str,
        as_type: &DataType,
    ) -> Result<datafusion::arrow::array::ArrayRef, FleetError> {
        let column = self.0.column_by_name(name);
        let column = column.ok_or_else(|| {
            FleetError::from(DataFusionError::Internal(format!("the query has no column {name}")))
        })?;
        Ok(cast(column, as_type).map_err(DataFusionError::from)?)
    }

    pub(crate) fn texts(&self, name: &str) -> Result<StringViewArray, FleetError> {
        Ok(self.column(name, &DataType::Utf8View)?.as_string_view().clone())
    }

    pub(crate) fn numbers(&self, name: &str) -> Result<Float64Array, FleetError> {
        Ok(self.column(name, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
    }

    /// The column `life`.
    pub(crate) fn lives(&self) -> Result<UInt64Array, FleetError> {
        Ok(self.column("life", &DataType::UInt64)?.as_primitive::<UInt64Type>().clone())
    }

    /// Whole numbers. Times are microseconds.
    pub(crate) fn whole(&self, name: &str) -> Result<Int64Array, FleetError> {
        Ok(self.column(name, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
    }
}

/// A number that may be null.
pub(crate) fn known(array: &Float64Array, row: usize) -> Option<f64> {
    (!array.is_null(row)).then(|| array.value(row))
}
