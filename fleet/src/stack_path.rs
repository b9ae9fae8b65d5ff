//! `stack_path`: the path of a stack in questions. A stack has the same path in all builds of its program, so that
//! questions compare versions.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Signature, SimpleScalarUDF, Volatility};

use crate::life::LifeHash;

/// The number of functions that a path shows.
const SHOWN: usize = 4;

/// The function `stack_path(frames)`: the innermost functions, and a hash of the names of all functions. Build ids,
/// offsets, files of functions and lines differ between builds, so they do not count. Null if no frame has a function.
pub(crate) fn stack_path() -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Immutable);
    let paths = Arc::new(paths);
    ScalarUDF::from(SimpleScalarUDF::new_with_signature("stack_path", signature, DataType::Utf8View, paths))
}

fn paths(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(arguments)?;
    let wrong = || exec_datafusion_err!("stack_path needs the column frames");
    let [stacks] = &arrays[..] else { return Err(wrong()) };
    let stacks = stacks.as_list_opt::<i32>().ok_or_else(wrong)?;
    let frames = stacks.values().as_struct_opt().ok_or_else(wrong)?;
    let column = |name: &str| -> Result<ArrayRef> {
        Ok(cast(frames.column_by_name(name).ok_or_else(wrong)?, &DataType::Utf8View)?)
    };
    let (functions, files, modules) = (column("function")?, column("file")?, column("module")?);
    let [functions, files, modules] = [&functions, &files, &modules].map(|texts| texts.as_string_view());
    let path = |row: usize| {
        let ends = [row, row + 1].map(|row| usize::try_from(stacks.value_offsets()[row]).unwrap_or_default());
        let places = ends[0]..ends[1];
        if stacks.is_null(row) || places.clone().all(|place| text(functions, place).is_none()) {
            return None;
        }
        // Without a function, a frame is a frame of its module, whose folder may be that of a version.
        let module = |place| text(modules, place).and_then(|path| path.rsplit('/').next());
        let name = |place| {
            let function = text(functions, place).map(stable_name);
            function.or_else(|| text(files, place)).or_else(|| module(place)).unwrap_or("?")
        };
        let mut hash = LifeHash::new();
        places.clone().for_each(|place| hash.text(name(place)));
        let shown: Vec<&str> = places.take(SHOWN).map(name).collect();
        Some(format!("{} ({:x})", shown.join(" < "), hash.0))
    };
    let paths: StringViewArray = (0..stacks.len()).map(path).collect();
    Ok(ColumnarValue::Array(Arc::new(paths)))
}

fn text(texts: &StringViewArray, place: usize) -> Option<&str> {
    (!texts.is_null(place)).then(|| texts.value(place)).filter(|text| !text.is_empty())
}

/// A function's name without the hash that rustc appends, as in `app::load::h0123456789abcdef`: each build has another.
fn stable_name(function: &str) -> &str {
    match function.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => function,
    }
}
