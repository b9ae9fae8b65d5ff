//! The format, byte for byte as Firefox's dumper writes it: one key on each line, indented by one blank for each
//! level.

use core::fmt::Write as _;
use std::io::{self, Write};

use crate::json::push_string;
use crate::process_name::own_process_name;
use crate::report_set::ReportSet;

/// The writer passes on text in pieces of at least this many bytes, except the last piece.
const PIECE: usize = 1 << 14;

pub(super) fn document(to: &mut dyn Write, set: &ReportSet) -> io::Result<()> {
    let mut text = String::with_capacity(2 * PIECE);
    text.push_str("{\n \"version\": 1,\n \"hasMozMallocUsableSize\": ");
    text.push_str(if set.usable_size_known() { "true," } else { "false," });
    name_patterns(&mut text, set);
    text.push_str("\n \"reports\": [");
    let own_name = own_process_name();
    let mut before = "\n";
    for report in set.iter() {
        text.push_str(before);
        text.push_str("  {\n   \"process\": ");
        push_string(&mut text, if report.process.is_empty() { &own_name } else { report.process });
        text.push_str(",\n   \"path\": ");
        push_string(&mut text, report.path);
        let (kind, units, amount) = (report.kind as u8, report.units as u8, report.amount);
        // Writing to a string does not fail.
        let _ = write!(text, ",\n   \"kind\": {kind},\n   \"units\": {units},\n   \"amount\": {amount}");
        text.push_str(",\n   \"description\": ");
        push_string(&mut text, report.description);
        text.push_str("\n  }");
        before = ",\n";
        if text.len() >= PIECE {
            to.write_all(text.as_bytes())?;
            text.clear();
        }
    }
    text.push_str("\n ]");
    super::warning::member(&mut text, set);
    text.push_str("\n}");
    to.write_all(text.as_bytes())
}

/// Appends the key `normalizeNames`. Firefox does not define this key, and ignores unknown keys.
fn name_patterns(to: &mut String, set: &ReportSet) {
    if set.name_patterns().is_empty() {
        return;
    }
    to.push_str("\n \"");
    to.push_str(super::name_patterns::KEY);
    to.push_str("\": [");
    let mut before = "\n  [";
    for pattern in set.name_patterns() {
        to.push_str(before);
        push_string(to, &pattern.pattern);
        to.push_str(", ");
        push_string(to, &pattern.replacement);
        to.push(']');
        before = ",\n  [";
    }
    to.push_str("\n ],");
}
