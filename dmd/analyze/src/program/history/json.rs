//! A history as JSON, for programs.

use core::fmt::{self, Display};

use super::{STEPS, UsageHistory, UsageRow};
use crate::dump::HeapAt;
use crate::print::{JsonString, list};
use crate::recording::{LIFE_LIMITS, MappedLine, UsageLine};

/// A history as JSON.
///
/// The text is an object with these members:
/// - `version` (1), `command`, `process`, `complete` (false if the process was killed or the disk was full), and
///   `warnings`.
/// - `beganLate`, only if true: the recording started while the program ran, and does not contain older blocks.
/// - `peak`, `end` and `older`: the heap at its peak, at the end, and the blocks older than the recording. Each has
///   `seconds` since the start, usable `bytes`, `requested` bytes, and `blocks`.
/// - The counts `allocations`, `frees`, `reallocations` and `temporary`.
/// - `stepSeconds`, the length of a step.
/// - `total`, a line, and the lists `sites`, `types` and `threads`, whose items are lines with `name` and `place`.
/// - `restOfSites`, `restOfTypes` and `restOfThreads`: the number of further `rows`, with the sums of their bytes `atPeak`
///   and `atEnd` and of their `allocations`.
/// - `mapped`, only if the program mapped memory with `mmap`: `mappings` (their number), the mapped bytes `highest`,
///   `atPeak` (of the heap), `atEnd` and `live` (the most bytes of each step), and `sites`: the same numbers for each
///   function, with `name` and `place`.
/// - `grown`: blocks that only grew, by `site` and `place`. Each item has `blocks`, `moves`, the bytes `copied`, and
///   `largest`: the block that grew to the largest size, with its first size `from`, its last size `to` and its `moves`.
/// - `freedByOthers`: the `blocks` and `bytes` that thread `allocatedBy` allocated, and that thread `freedBy` freed or
///   moved.
///
/// A line has the live bytes `highest`, `atPeak` and `atEnd`, the counts `allocations` (including reallocations) and
/// `temporary`, and the bytes `allocated`. Its lists `live` (the most live bytes) and `made` (allocations and
/// reallocations) have one number for each step. `sizes` has pairs: the largest size of a class, and the number of its
/// allocations. `lives` has pairs: the nanoseconds at which a class of life-times ends (`null`: never), and the number
/// of its freed blocks.
#[derive(Debug)]
pub struct HistoryJson<'h> {
    history: &'h UsageHistory,
    rows: usize,
}

impl<'h> HistoryJson<'h> {
    pub(super) fn new(history: &'h UsageHistory, rows: usize) -> Self {
        Self { history, rows }
    }

    fn rows(&self, f: &mut fmt::Formatter<'_>, name: &str, rows: &[UsageRow]) -> fmt::Result {
        write!(f, ",\n \"{name}\": [")?;
        list(f, &rows[..rows.len().min(self.rows)], "\n  ", |f, row| {
            let name = row.holder.whole();
            write!(f, "{{\"name\": {}, \"place\": {}, ", JsonString(&name), JsonString(&row.place))?;
            line(f, &row.line)?;
            f.write_str("}")
        })?;
        let rest = &rows[rows.len().min(self.rows)..];
        let sum = |amount: fn(&UsageLine) -> u128| rest.iter().map(|row| amount(&row.line)).sum::<u128>();
        let heading = match name {
            "sites" => "restOfSites",
            "types" => "restOfTypes",
            _ => "restOfThreads",
        };
        write!(f, "],\n \"{heading}\": {{\"rows\": {}, ", rest.len())?;
        write!(
            f,
            "\"atPeak\": {}, \"atEnd\": {}, ",
            sum(|line| line.at_peak.into()),
            sum(|line| line.at_end.into())
        )?;
        write!(f, "\"allocations\": {}}}", sum(|line| line.allocations.into()))
    }
}

fn mapped_line(f: &mut fmt::Formatter<'_>, line: &MappedLine) -> fmt::Result {
    let MappedLine { live, highest, at_peak, at_end, mappings } = line;
    write!(
        f,
        "\"mappings\": {mappings}, \"highest\": {highest}, \"atPeak\": {at_peak}, \"atEnd\": {at_end}"
    )?;
    f.write_str(", \"live\": [")?;
    list(f, live, "", |f, bytes| write!(f, "{bytes}"))?;
    f.write_str("]")
}

impl Display for HistoryJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UsageHistory { outline, warnings, total, sites, types, threads, grown, pairs, mapped, .. } =
            self.history;
        f.write_str("{\n \"version\": 1,\n \"command\": [")?;
        list(f, &outline.command, "", |f, word| write!(f, "{}", JsonString(word)))?;
        write!(f, "],\n \"process\": {},\n \"complete\": {},\n", outline.process, outline.is_complete)?;
        if outline.began_late {
            f.write_str(" \"beganLate\": true,\n")?;
        }
        f.write_str(" \"warnings\": [")?;
        list(f, warnings, "", |f, warning| write!(f, "{}", JsonString(warning)))?;
        f.write_str("]")?;
        for (name, heap) in [("peak", &outline.peak), ("end", &outline.end), ("older", &outline.older)] {
            let HeapAt { time, bytes, requested, blocks } = heap;
            let seconds = time.as_secs_f64();
            write!(
                f,
                ",\n \"{name}\": {{\"seconds\": {seconds}, \"bytes\": {bytes}, \"requested\": {requested}, \"blocks\": {blocks}}}"
            )?;
        }
        let counts = &outline.statistics;
        for (name, count) in [
            ("allocations", counts.allocations),
            ("frees", counts.frees),
            ("reallocations", counts.reallocations),
            ("temporary", counts.temporary),
        ] {
            write!(f, ",\n \"{name}\": {count}")?;
        }
        let step = outline.end.time.as_secs_f64() / STEPS as f64;
        write!(f, ",\n \"stepSeconds\": {step},\n \"total\": {{")?;
        line(f, total)?;
        f.write_str("}")?;
        self.rows(f, "sites", sites)?;
        self.rows(f, "types", types)?;
        self.rows(f, "threads", threads)?;
        if !mapped.rows.is_empty() {
            f.write_str(",\n \"mapped\": {")?;
            mapped_line(f, &mapped.total)?;
            f.write_str(", \"sites\": [")?;
            list(f, &mapped.rows[..mapped.rows.len().min(self.rows)], "\n  ", |f, row| {
                let name = row.holder.whole();
                write!(f, "{{\"name\": {}, \"place\": {}, ", JsonString(&name), JsonString(&row.place))?;
                mapped_line(f, &row.line)?;
                f.write_str("}")
            })?;
            f.write_str("]}")?;
        }
        f.write_str(",\n \"grown\": [")?;
        list(f, &grown[..grown.len().min(self.rows)], "\n  ", |f, row| {
            let (from, to, of_largest) = row.largest;
            let name = row.holder.whole();
            write!(f, "{{\"site\": {}, \"place\": {}, ", JsonString(&name), JsonString(&row.place))?;
            write!(f, "\"blocks\": {}, \"moves\": {}, \"copied\": {}, ", row.blocks, row.moves, row.copied)?;
            write!(f, "\"largest\": {{\"from\": {from}, \"to\": {to}, \"moves\": {of_largest}}}}}")
        })?;
        f.write_str("],\n \"freedByOthers\": [")?;
        list(f, &pairs[..pairs.len().min(self.rows)], "\n  ", |f, pair| {
            let (from, to) = (JsonString(&pair.allocated_by), JsonString(&pair.freed_by));
            write!(f, "{{\"allocatedBy\": {from}, \"freedBy\": {to}, ")?;
            write!(f, "\"blocks\": {}, \"bytes\": {}}}", pair.freed.blocks, pair.freed.bytes)
        })?;
        f.write_str("]\n}\n")
    }
}

fn line(f: &mut fmt::Formatter<'_>, line: &UsageLine) -> fmt::Result {
    let UsageLine { live, made, highest, at_peak, at_end, allocations, allocated, temporary, sizes, lives } =
        line;
    write!(f, "\"highest\": {highest}, \"atPeak\": {at_peak}, \"atEnd\": {at_end}, ")?;
    write!(f, "\"allocations\": {allocations}, \"allocated\": {allocated}, \"temporary\": {temporary}")?;
    for (name, amounts) in [("live", live), ("made", made)] {
        write!(f, ", \"{name}\": [")?;
        list(f, amounts, "", |f, amount| write!(f, "{amount}"))?;
        f.write_str("]")?;
    }
    let sizes: Vec<(u128, u64)> = sizes
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(class, count)| (class.checked_sub(1).map_or(0, |power| 1 << power), *count))
        .collect();
    f.write_str(", \"sizes\": [")?;
    list(f, &sizes, "", |f, (top, count)| write!(f, "[{top}, {count}]"))?;
    f.write_str("], \"lives\": [")?;
    let lives: Vec<(Option<&u64>, u64)> =
        lives.iter().enumerate().map(|(class, count)| (LIFE_LIMITS.get(class), *count)).collect();
    list(f, &lives, "", |f, (end, count)| match end {
        Some(end) => write!(f, "[{end}, {count}]"),
        None => write!(f, "[null, {count}]"),
    })?;
    f.write_str("]")
}
