//! Records as text for the author of the program.

use core::fmt::{self, Display};

use super::alike::merged;
use super::line::{bold, bytes};
use super::stack_text::StackText;
use super::{HeapSummary, ProgramOptions};
use crate::print::{CleanText, blocks, mark, number, percent};
use crate::records::{Analysis, BlockSums, CutStackId, KindSection, RecordKind, ReporterClaims, StackRecord};

/// The maximum number of block sizes in a record's line.
const SIZES: usize = 4;

/// An analysis for the author of the program: a summary, then records. Its `Display` gives the text.
#[derive(Debug)]
pub struct ProgramText<'a> {
    analysis: &'a Analysis,
    options: &'a ProgramOptions,
    records: usize,
}

impl Analysis {
    /// The text for the author of the program: the largest sites, types and crates, then at most `records` records
    /// of each kind.
    ///
    /// The analysis should have whole stacks and all records: [`AnalyzeOptions::max_frames`] and
    /// [`AnalyzeOptions::limit`] of `usize::MAX`.
    ///
    /// [`AnalyzeOptions::max_frames`]: crate::AnalyzeOptions::max_frames
    /// [`AnalyzeOptions::limit`]: crate::AnalyzeOptions::limit
    pub fn program_text<'a>(&'a self, records: usize, options: &'a ProgramOptions) -> ProgramText<'a> {
        ProgramText { analysis: self, options, records }
    }

    /// Whether no reporter reported a block: the program has no reporters, or no collection ran.
    pub(super) fn has_no_reports(&self) -> bool {
        let is_reported = |kind| matches!(kind, RecordKind::OnceReported | RecordKind::TwiceReported);
        self.sections.iter().all(|section| !is_reported(section.kind) || section.all == 0)
    }
}

impl Display for ProgramText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let analysis = self.analysis;
        let stacks = StackText::new(analysis, self.options);
        write!(f, "{}", HeapSummary::new(analysis, self.options))?;
        for section in &analysis.sections {
            if section.kept > 0 {
                self.section(f, section, &stacks)?;
            }
        }
        self.faults(f)
    }
}

impl ProgramText<'_> {
    fn section(
        &self,
        f: &mut fmt::Formatter<'_>,
        section: &KindSection,
        stacks: &StackText<'_>,
    ) -> fmt::Result {
        let heap = self.analysis.total.usable();
        let usable = section.sums.usable();
        let mark = mark(section.estimated);
        let title = match section.kind {
            RecordKind::Live => "Live heap",
            RecordKind::Cumulative => "All blocks that the program ever allocated",
            RecordKind::Unreported if self.analysis.has_no_reports() => "Live heap",
            RecordKind::Unreported => "Heap that no reporter reports",
            RecordKind::OnceReported => "Heap that one reporter reports",
            RecordKind::TwiceReported => "Heap that reporters report twice",
        };
        let sums = format!("{mark}{} in {mark}{}", bytes(usable), blocks(section.sums.num));
        let share =
            if usable == heap { String::new() } else { format!(", {} of the heap", percent(usable, heap)) };
        writeln!(f, "\n{}", bold(&format!("{title}: {sums}{share}"), self.options))?;
        let records = merged(self.analysis, &section.records, self.options);
        let mut so_far = 0;
        for (index, record) in records.iter().take(self.records).enumerate() {
            so_far += record.sums.usable();
            self.record(f, record, index + 1, so_far, usable, stacks)?;
        }
        // A limit of the analysis may leave out records.
        let all = section.kept.saturating_sub(section.records.len()) + records.len();
        let rest = all.saturating_sub(records.len().min(self.records));
        if rest > 0 {
            let bytes = format!("{mark}{}", bytes(usable - so_far));
            writeln!(f, "\n{} more stacks with {bytes}; --limit shows more.", number(rest as i128))?;
        }
        Ok(())
    }

    fn record(
        &self,
        f: &mut fmt::Formatter<'_>,
        record: &StackRecord,
        index: usize,
        so_far: i128,
        whole: i128,
        stacks: &StackText<'_>,
    ) -> fmt::Result {
        let mark = mark(record.estimated);
        let usable = record.sums.usable();
        let amount = bold(&format!("{mark}{}", bytes(usable)), self.options);
        let share = percent(usable, whole);
        let so_far = percent(so_far, whole);
        let num = blocks(record.sums.num);
        let before = format!("{index}. {mark}{}  {share} ({so_far} so far)  in {mark}{num}", bytes(usable));
        let sizes = if self.analysis.has_means() {
            mean(record)
        } else {
            sizes(record, self.options.width.saturating_sub(before.chars().count()))
        };
        writeln!(f, "\n{index}. {amount}  {share} ({so_far} so far)  in {mark}{num}{sizes}")?;
        if self.options.resident && self.analysis.has_resident() {
            let BlockSums { swapped, untouched, .. } = record.sums;
            let resident = bytes(record.sums.resident());
            let swapped = match swapped {
                0 => String::new(),
                _ => format!("{mark}{} swapped, ", bytes(swapped)),
            };
            writeln!(f, "    {mark}{resident} resident, {swapped}{mark}{} untouched", bytes(untouched))?;
        }
        stacks.type_of(f, record.alloc)?;
        stacks.stack(f, record.alloc)?;
        let titles = ["reported at", "reported again at"];
        let reports = (0..2).filter(|nth| record.reps[*nth] != CutStackId::NONE).map(|nth| {
            let reporter = self.analysis.reporters.get(record.reporters[nth] as usize);
            let path = reporter.map_or("", |reporter| &*reporter.path);
            let gap = if path.is_empty() { "" } else { " " };
            (format!("{}{gap}{}", titles[nth], CleanText(path)), record.reps[nth])
        });
        stacks.reports(f, &reports.collect::<Vec<_>>())
    }

    /// Writes the faults of reports: amounts that differ from the sizes of the blocks, and pointers without a live
    /// block.
    fn faults(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for list in ReporterClaims::new(&self.analysis.reporters).lists() {
            if !list.reporters.is_empty() {
                write!(f, "\n{}\n{list}", bold(list.title, self.options))?;
            }
        }
        if !self.analysis.faults.is_empty() {
            writeln!(f, "\n{}", bold("Reported pointers without a live block", self.options))?;
            self.analysis.faults.iter().try_for_each(|fault| writeln!(f, "  {fault}"))?;
        }
        Ok(())
    }
}

/// The mean size of a record's blocks, such as `: mean 111 B`.
fn mean(record: &StackRecord) -> String {
    match record.sums.num {
        ..=1 => String::new(),
        blocks => format!(": mean {}", bytes(record.sums.usable() / blocks)),
    }
}

/// The sizes of a record's blocks, such as `: 8.00 MiB x 5, 2.00 MiB`: at most four sizes, and only as many as fit in
/// `room` characters.
fn sizes(record: &StackRecord, room: usize) -> String {
    if record.estimated || record.sizes.is_empty() || record.sums.num == 1 {
        return String::new();
    }
    let one = |(size, count): &(i128, i128)| match count {
        1 => bytes(*size),
        _ => format!("{} x {}", bytes(*size), number(*count)),
    };
    let mut text = String::new();
    for (at, size) in record.sizes.iter().enumerate() {
        let next = format!("{}{}", if at == 0 { ": " } else { ", " }, one(size));
        let rest = if at + 1 < record.sizes.len() { ", …" } else { "" };
        if at == SIZES || (at > 0 && text.chars().count() + next.len() + rest.chars().count() > room) {
            return text + ", …";
        }
        text.push_str(&next);
    }
    text
}
