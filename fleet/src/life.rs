//! `life_id`: one number for a process from its start to its end, so that queries group by a number.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType, UInt32Type};
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};

/// The function `life_id(service, host, process, pid, started)`. Null and an empty text are the same.
pub(crate) fn life_id() -> ScalarUDF {
    let text = DataType::Utf8View;
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let inputs = vec![text.clone(), text.clone(), text, DataType::UInt32, time];
    create_udf("life_id", inputs, DataType::UInt64, Volatility::Immutable, Arc::new(ids))
}

fn ids(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(arguments)?;
    let [service, host, process, pid, started] = &arrays[..] else {
        return Err(exec_datafusion_err!("life_id needs five arguments"));
    };
    let texts: Vec<ArrayRef> = [service, host, process]
        .into_iter()
        .map(|texts| cast(texts, &DataType::Utf8View))
        .collect::<Result<_, _>>()?;
    let texts: Vec<_> = texts.iter().map(|texts| texts.as_string_view()).collect();
    let (pid, started) =
        (pid.as_primitive::<UInt32Type>(), started.as_primitive::<TimestampMicrosecondType>());
    let ids = (0..service.len()).map(|row| {
        let mut hash = LifeHash::new();
        for texts in &texts {
            hash.text(if texts.is_null(row) { "" } else { texts.value(row) });
        }
        hash.word(if pid.is_null(row) { 0 } else { u64::from(pid.value(row)) });
        hash.word(if started.is_null(row) { 0 } else { started.value(row).cast_unsigned() });
        hash.0
    });
    Ok(ColumnarValue::Array(Arc::new(ids.collect::<UInt64Array>())))
}

/// A hash that is stored in files, so it must never change.
pub(crate) struct LifeHash(pub(crate) u64);

impl LifeHash {
    pub(crate) fn new() -> Self {
        Self(0x243f_6a88_85a3_08d3)
    }

    pub(crate) fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }

    /// Adds the length first, so that the borders between texts matter.
    pub(crate) fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        for word in text.as_bytes().chunks(8) {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            self.word(u64::from_le_bytes(bytes));
        }
    }
}
