//! Writes an analysis as JSON, for programs.

use core::fmt::{self, Display};

use crate::dump::{DumpTime, FrameText};
use crate::print::{JsonString, list};
use crate::records::{Analysis, BlockSums, CutStackId, KindSection, RecordTable, ReportFault, StackRecord};

/// An analysis as JSON.
///
/// The text is an object with these members:
/// - `version`: 1.
/// - `invocations`: `dmdEnvVar` and `mode` of each dump. `at` has the value `peak` if the blocks are from the heap's
///   peak. For a sample by bytes, `sampleBytes` is its mean distance.
/// - `total`: sums.
/// - `kinds`: each with `kind`, sums, `records` (the number of records without filters), `shown`, the list of records,
///   `rest` (the sums of the records beyond the limit, with their number as `records`), and `tables`, if tables were
///   requested. A record has sums, `sizes` (pairs of usable size and count, as in the
///   text), `addresses` (scan mode), and the stacks `allocatedAt` and `reportedAt`, innermost frame first. At the peak
///   of a dump, a record of several blocks has an empty list `sizes`, and `meanSize`. A table has `by`, `rows` (the
///   number of all rows), `shown`, the list of rows, each with `name` and sums, and `rest`, the sums of all other rows.
/// - `reportFaults`, if reporters reported pointers without a live block: `kind` (`not-heap`, `interior` or `freed`),
///   `path`, `count`, the first `address`, the function `reporter` with its `place`, and the stack `reportedAt`.
/// - `memory`, if requested: the resident memory of the process in `rows`, each with `owner`, `name`, `resident` and
///   `swapped`. At most 1,000 rows, and a last row with the sum of all others.
///
/// With `memory`, sums also have `resident`, `swapped` and `untouched` bytes, if the dump has them.
///
/// Sums are `blocks`, `requested`, `slop` and `usable` (bytes), and `estimated` if they contain estimates. For a sample
/// by bytes, estimated sums have `standardError`, an upper bound of the standard error of `usable`. All numbers are
/// whole, and may exceed 53 bits.
#[derive(Debug)]
pub struct AnalysisJson<'a>(&'a Analysis, Option<String>);

impl Analysis {
    /// All shown records and tables, as JSON.
    pub fn json(&self) -> AnalysisJson<'_> {
        AnalysisJson(self, None)
    }
}

impl AnalysisJson<'_> {
    /// Adds the resident memory: of each record if the dump has it, and of the whole process as `memory`, the text of
    /// [`ResidentMemory::json`](crate::program::ResidentMemory::json).
    #[must_use]
    pub fn resident(mut self, memory: String) -> Self {
        self.1 = Some(memory);
        self
    }
}

impl Display for AnalysisJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\n \"version\": 1,\n \"invocations\": [")?;
        list(f, &self.0.invocations, "", |f, invocation| {
            f.write_str("{\"dmdEnvVar\": ")?;
            match &invocation.variable {
                Some(variable) => write!(f, "{}", JsonString(variable))?,
                None => f.write_str("null")?,
            }
            let at = if invocation.at == DumpTime::Peak { ", \"at\": \"peak\"" } else { "" };
            write!(f, ", \"mode\": \"{}\"{at}", invocation.mode)?;
            if let Some(sample) = &invocation.sample {
                write!(f, ", \"sampleBytes\": {}", sample.mean)?;
            }
            f.write_str("}")
        })?;
        f.write_str("],\n \"total\": {")?;
        self.sums(f, self.0.total, self.0.estimated)?;
        f.write_str("},\n \"kinds\": [")?;
        list(f, &self.0.sections, "\n  ", |f, section| self.section(f, section))?;
        f.write_str("\n ]")?;
        if !self.0.faults.is_empty() {
            f.write_str(",\n \"reportFaults\": [")?;
            list(f, &self.0.faults, "\n  ", fault)?;
            f.write_str("\n ]")?;
        }
        if let Some(memory) = &self.1 {
            write!(f, ",\n \"memory\": {memory}")?;
        }
        f.write_str("\n}\n")
    }
}

impl AnalysisJson<'_> {
    fn section(&self, f: &mut fmt::Formatter<'_>, section: &KindSection) -> fmt::Result {
        write!(f, "{{\"kind\": \"{}\", ", section.kind.name().to_ascii_lowercase())?;
        self.sums(f, section.sums, section.estimated)?;
        write!(f, ", \"records\": {}, \"shown\": [", section.all)?;
        list(f, &section.records, "\n   ", |f, record| self.record(f, record))?;
        let mut rest = section.sums;
        section.records.iter().for_each(|record| rest.subtract(record.sums));
        write!(f, "], \"rest\": {{\"records\": {}, ", section.kept - section.records.len())?;
        self.sums(f, rest, section.estimated)?;
        f.write_str("}")?;
        if !section.tables.is_empty() {
            f.write_str(", \"tables\": [")?;
            list(f, &section.tables, "\n   ", |f, table| self.table(f, table))?;
            f.write_str("]")?;
        }
        f.write_str("}")
    }

    fn record(&self, f: &mut fmt::Formatter<'_>, record: &StackRecord) -> fmt::Result {
        f.write_str("{")?;
        self.sums(f, record.sums, record.estimated)?;
        f.write_str(", \"sizes\": [")?;
        list(f, &record.sizes, "", |f, (size, count)| write!(f, "[{size}, {count}]"))?;
        f.write_str("]")?;
        if self.0.has_means() && record.sums.num > 1 {
            write!(f, ", \"meanSize\": {}", record.sums.usable() / record.sums.num)?;
        }
        if !record.addresses.is_empty() {
            f.write_str(", \"addresses\": [")?;
            list(f, &record.addresses, "", |f, address| write!(f, "\"{address:x}\""))?;
            f.write_str("]")?;
        }
        f.write_str(", \"allocatedAt\": ")?;
        self.stack(f, record.alloc)?;
        let reports: Vec<CutStackId> =
            record.reps.into_iter().filter(|stack| *stack != CutStackId::NONE).collect();
        if !reports.is_empty() {
            f.write_str(", \"reportedAt\": [")?;
            list(f, &reports, "", |f, stack| self.stack(f, *stack))?;
            f.write_str("]")?;
        }
        f.write_str("}")
    }

    fn table(&self, f: &mut fmt::Formatter<'_>, table: &RecordTable) -> fmt::Result {
        write!(f, "{{\"by\": \"{}\", \"rows\": {}, \"shown\": [", table.by.name(), table.all)?;
        list(f, &table.rows, "\n    ", |f, row| {
            write!(f, "{{\"name\": {}, ", JsonString(&row.name))?;
            self.sums(f, row.sums, row.estimated)?;
            f.write_str("}")
        })?;
        write!(f, "], \"rest\": {{\"rows\": {}, ", table.all - table.rows.len())?;
        self.sums(f, table.rest, self.0.estimated)?;
        f.write_str("}}")
    }

    fn sums(&self, f: &mut fmt::Formatter<'_>, sums: BlockSums, estimated: bool) -> fmt::Result {
        let BlockSums { num, req, slop, swapped, untouched } = sums;
        let usable = sums.usable();
        write!(f, "\"blocks\": {num}, \"requested\": {req}, \"slop\": {slop}, \"usable\": {usable}")?;
        if self.1.is_some() && self.0.has_resident() {
            let resident = sums.resident();
            write!(f, ", \"resident\": {resident}, \"swapped\": {swapped}, \"untouched\": {untouched}")?;
        }
        if !estimated {
            return Ok(());
        }
        f.write_str(", \"estimated\": true")?;
        match self.0.sample() {
            Some(sample) => {
                let bytes = u64::try_from(usable).unwrap_or_default();
                write!(f, ", \"standardError\": {:.0}", sample.largest_error(bytes))
            }
            None => Ok(()),
        }
    }

    fn stack(&self, f: &mut fmt::Formatter<'_>, stack: CutStackId) -> fmt::Result {
        let frames: Vec<&str> = self.0.frames(stack).map(FrameText::without_number).collect();
        f.write_str("[")?;
        list(f, &frames, "", |f, frame| write!(f, "{}", JsonString(frame)))?;
        f.write_str("]")
    }
}

fn fault(f: &mut fmt::Formatter<'_>, fault: &ReportFault) -> fmt::Result {
    let ReportFault { kind, path, count, address, reporter, place, stack } = fault;
    write!(f, "{{\"kind\": \"{}\", \"path\": {}, ", kind.name(), JsonString(path))?;
    write!(f, "\"count\": {count}, \"address\": \"{address:x}\", ")?;
    write!(f, "\"reporter\": {}, \"place\": {}, \"reportedAt\": [", JsonString(reporter), JsonString(place))?;
    list(f, stack, "", |f, frame| write!(f, "{}", JsonString(frame)))?;
    f.write_str("]}")
}
