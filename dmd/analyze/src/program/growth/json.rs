//! Growth as JSON, for programs.

use core::fmt::{self, Display};

use super::{GrowthRow, HeapGrowth, add, growth};
use crate::print::{JsonString, list};
use crate::recording::LiveSums;

/// Growth as JSON.
///
/// The text is an object with these members:
/// - `version` (1) and `warnings`.
/// - `from` and `to`: the two times in seconds.
/// - `beganLate`, only if true: the recording started while the program ran, and does not contain older blocks.
/// - `total`: the growth of the whole heap.
/// - `sites` and `types`: lists of items with `name` and `place`, sorted descending by growth.
/// - `restOfSites` and `restOfTypes`: the number of further `rows`, and their sums.
///
/// The total and each item have `growth` in bytes (negative if the bytes shrank), and the objects `before` and `after`
/// with the live `bytes` and `blocks` at both times. Bytes are usable bytes.
#[derive(Debug)]
pub struct GrowthJson<'g> {
    growth: &'g HeapGrowth,
    rows: usize,
}

impl<'g> GrowthJson<'g> {
    pub(super) fn new(growth: &'g HeapGrowth, rows: usize) -> Self {
        Self { growth, rows }
    }

    fn rows(&self, f: &mut fmt::Formatter<'_>, name: &str, rows: &[GrowthRow]) -> fmt::Result {
        write!(f, ",\n \"{name}\": [")?;
        list(f, &rows[..rows.len().min(self.rows)], "\n  ", |f, row| {
            let name = row.holder.whole();
            write!(f, "{{\"name\": {}, \"place\": {}, ", JsonString(&name), JsonString(&row.place))?;
            amounts(f, &row.sums)?;
            f.write_str("}")
        })?;
        let rest = &rows[rows.len().min(self.rows)..];
        let mut sums = [LiveSums::default(); 2];
        rest.iter().for_each(|row| add(&mut sums, row.sums));
        let heading = if name == "sites" { "restOfSites" } else { "restOfTypes" };
        write!(f, "],\n \"{heading}\": {{\"rows\": {}, ", rest.len())?;
        amounts(f, &sums)?;
        f.write_str("}")
    }
}

impl Display for GrowthJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeapGrowth { times: [from, to], total, tables: [sites, types], began_late, warnings } =
            self.growth;
        f.write_str("{\n \"version\": 1,\n \"warnings\": [")?;
        list(f, warnings, "", |f, warning| write!(f, "{}", JsonString(warning)))?;
        write!(f, "],\n \"from\": {},\n \"to\": {},\n", from.as_secs_f64(), to.as_secs_f64())?;
        if *began_late {
            f.write_str(" \"beganLate\": true,\n")?;
        }
        f.write_str(" \"total\": {")?;
        amounts(f, total)?;
        f.write_str("}")?;
        self.rows(f, "sites", sites)?;
        self.rows(f, "types", types)?;
        f.write_str("\n}\n")
    }
}

fn amounts(f: &mut fmt::Formatter<'_>, sums: &[LiveSums; 2]) -> fmt::Result {
    write!(f, "\"growth\": {}", growth(sums))?;
    for (name, LiveSums { blocks, bytes }) in ["before", "after"].into_iter().zip(sums) {
        write!(f, ", \"{name}\": {{\"bytes\": {bytes}, \"blocks\": {blocks}}}")?;
    }
    Ok(())
}
