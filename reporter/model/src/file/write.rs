//! The format, byte for byte as Firefox's dumper writes it: one key on each line, indented by one blank for each
//! level.

use std::io::{self, Write};

use crate::process_name::own_process_name;
use crate::report_set::ReportSet;

pub(super) fn document(mut to: impl Write, set: &ReportSet) -> io::Result<()> {
    write!(to, "{{\n \"version\": 1,\n \"hasMozMallocUsableSize\": {},", set.usable_size_known())?;
    name_patterns(&mut to, set)?;
    to.write_all(b"\n \"reports\": [")?;
    let own_name = own_process_name();
    let mut before = "\n";
    for report in set.iter() {
        let process = if report.process.is_empty() { &own_name } else { report.process };
        write!(to, "{before}  {{\n   \"process\": ")?;
        serde_json::to_writer(&mut to, process)?;
        to.write_all(b",\n   \"path\": ")?;
        serde_json::to_writer(&mut to, report.path)?;
        write!(
            to,
            ",\n   \"kind\": {},\n   \"units\": {},\n   \"amount\": {},\n   \"description\": ",
            report.kind as u8, report.units as u8, report.amount
        )?;
        serde_json::to_writer(&mut to, report.description)?;
        to.write_all(b"\n  }")?;
        before = ",\n";
    }
    to.write_all(b"\n ]")?;
    super::warning::member(&mut to, set)?;
    to.write_all(b"\n}")
}

/// This key is ours; Firefox ignores unknown keys.
fn name_patterns(mut to: impl Write, set: &ReportSet) -> io::Result<()> {
    if set.name_patterns().is_empty() {
        return Ok(());
    }
    write!(to, "\n \"{}\": [", super::name_patterns::KEY)?;
    let mut before = "\n  [";
    for pattern in set.name_patterns() {
        to.write_all(before.as_bytes())?;
        serde_json::to_writer(&mut to, &pattern.pattern)?;
        to.write_all(b", ")?;
        serde_json::to_writer(&mut to, &pattern.replacement)?;
        to.write_all(b"]")?;
        before = ",\n  [";
    }
    to.write_all(b"\n ],")
}
