//! Folded stacks: one line for each stack, with its frames (outermost first) and its bytes. `inferno`, speedscope and
//! Perfetto open them.

use std::io::{BufWriter, Write};

use memory_report::is_deceptive;

use crate::error::ExportError;
use crate::stack_profile::{ProfileValue, StackProfile};

const FORMAT: &str = "folded stacks";

/// Writes live bytes or, if they were not recorded, allocated bytes. Stacks without bytes have no line.
///
/// # Errors
///
/// Returns an error if `out` fails, or if an amount is negative.
pub fn write(stacks: &StackProfile, out: impl Write) -> Result<(), ExportError> {
    let values = [ProfileValue::LiveBytes, ProfileValue::AllocatedBytes];
    let Some((value, column)) = values.into_iter().find_map(|value| Some((value, stacks.index_of(value)?)))
    else {
        return Err(ExportError::NotRecorded(FORMAT, "bytes"));
    };
    let mut names: Vec<Option<String>> = vec![None; stacks.frame_count()];
    let mut out = BufWriter::with_capacity(1 << 16, out);
    for owned in stacks.owned().iter() {
        let bytes = owned.sums[column];
        if bytes < 0 {
            return Err(ExportError::Negative(FORMAT, value.name(), bytes));
        }
        if bytes == 0 {
            continue;
        }
        let mut before = "";
        for name in owned.owner.frames() {
            write!(out, "{before}{}", cleaned(&name))?;
            before = ";";
        }
        for id in stacks.stack(owned.stack).iter().rev() {
            let name = &mut names[id.0 as usize];
            let name = name.get_or_insert_with(|| cleaned(&stacks.frame_name(&stacks.frame(*id))));
            out.write_all(before.as_bytes())?;
            out.write_all(name.as_bytes())?;
            before = ";";
        }
        writeln!(out, " {bytes}")?;
    }
    out.flush()?;
    Ok(())
}

/// Returns the name without the characters that end a frame or a line, or that could deceive a reader.
fn cleaned(name: &str) -> String {
    let mut cleaned = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            ';' => cleaned.push(' '),
            c if c.is_control() => cleaned.push(' '),
            c if is_deceptive(c) => cleaned.extend(c.escape_unicode()),
            c => cleaned.push(c),
        }
    }
    cleaned
}
