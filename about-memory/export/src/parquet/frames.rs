//! The table `frames`.

use std::io::Write;

use super::columns::ColumnEntry;
use super::options::ParquetOptions;
use super::run::ParquetRun;
use super::stack_ids::stack_ids;
use super::table::{TableLayout, TableWriter};
use crate::error::ExportError;
use crate::stack_profile::{ProfileFrame, ProfileStackId, StackProfile};

const LAYOUT: TableLayout = TableLayout {
    name: "frames",
    schema: "message frames {
        required binary service (STRING);
        required int64 stack_id (INTEGER(64,false));
        required group frames (LIST) {
            repeated group list {
                required group element {
                    optional binary build_id (STRING);
                    optional int64 offset (INTEGER(64,false));
                    optional binary function (STRING);
                    optional binary file (STRING);
                    optional int32 line (INTEGER(32,false));
                    optional binary module (STRING);
                }
            }
        }
    }",
    sorted_by: &["stack_id"],
    deltas: &["stack_id"],
    prefixes: &[],
    plain: &[],
    bloom: &[],
};

/// Writes the table `frames`: each stack of the table `stacks` once.
///
/// Columns: `service`, `stack_id`, and `frames`, a list of structures, innermost first. A structure has `build_id`,
/// `offset` (an address in the module's file), `function`, `file`, `line` and `module`. Unknown values are null.
/// If neighboring frames have the same offset, the compiler has inlined the earlier frames into the last frame.
///
/// # Errors
///
/// Returns an error if `out` fails, or if a text exceeds 1 GiB.
pub fn frames(
    run: &ParquetRun,
    stacks: &StackProfile,
    options: &ParquetOptions,
    out: impl Write + Send,
) -> Result<(), ExportError> {
    let ids = stack_ids(stacks);
    let mut rows: Vec<(u64, u32)> = ids.into_iter().zip(0..).collect();
    rows.sort_unstable();
    rows.dedup_by_key(|(id, _)| *id);
    let table = TableWriter::new(&LAYOUT, options, rows.len(), [run], out)?;
    table.write(&rows, |columns, rows| {
        columns.texts(rows.iter().map(|_| Some(&*run.service)));
        columns.integers(rows.iter().map(|(id, _)| Some(id.cast_signed())));
        let module =
            move |frame: &ProfileFrame<'_>| frame.module.map(|module| &stacks.modules()[module.index()]);
        let build_id = move |frame: ProfileFrame<'_>| {
            module(&frame).map(|module| &*module.build_id).filter(|build_id| !build_id.is_empty())
        };
        columns.nested_texts(entries(stacks, rows, build_id));
        columns.nested_integers(entries(stacks, rows, |frame| frame.offset.map(u64::cast_signed)));
        columns.nested_texts(entries(stacks, rows, |frame| frame.function));
        columns.nested_texts(entries(stacks, rows, |frame| frame.file));
        columns.nested_small(entries(stacks, rows, |frame| frame.line.map(u32::cast_signed)));
        columns.nested_texts(entries(stacks, rows, move |frame| module(&frame).map(|module| &*module.path)));
    })
}

/// The entries of a column: for each frame of the stacks, the field that `part` returns.
fn entries<'s, T: Send + 's>(
    stacks: &'s StackProfile,
    rows: &'s [(u64, u32)],
    part: impl Fn(ProfileFrame<'s>) -> Option<T> + Copy + Send + 's,
) -> impl Iterator<Item = ColumnEntry<T>> + Send + 's {
    rows.iter().flat_map(move |(_, stack)| {
        let frames = stacks.stack(ProfileStackId(*stack));
        let none = frames.is_empty().then_some(ColumnEntry { repetition: 0, definition: 0, value: None });
        let frames = frames.iter().enumerate().map(move |(index, frame)| {
            let value = part(stacks.frame(*frame));
            let definition = 1 + i16::from(value.is_some());
            ColumnEntry { repetition: i16::from(index > 0), definition, value }
        });
        none.into_iter().chain(frames)
    })
}
