//! One heap, as data for a web page: the blocks of each stack, separated by how often reporters reported them.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use super::ProgramOptions;
use super::stack_rows::{HeapSide, MOST_ROWS, StackEntry, StackRows, stack_rows};
use crate::dump::Dump;
use crate::print::CleanText;
use crate::records::{Analysis, AnalyzeOptions, BlockSums, CutStackId, RecordKind, ReportFault, reporter};

/// The blocks of a dump by stack and kind.
#[derive(Clone, Debug)]
pub struct HeapBlocks {
    rows: StackRows,
    kinds: Vec<BlocksOfKind>,
    reporters: Vec<BlocksOfReporter>,
    estimated: bool,
    has_resident: bool,
    faults: Vec<ReportFault>,
}

/// The blocks of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlocksOfKind {
    /// How often reporters reported these blocks.
    pub kind: RecordKind,
    /// The sums of the kind in each row.
    pub sums: Vec<BlockSums>,
}

/// The blocks that a reporter reported, alone or with another reporter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlocksOfReporter {
    /// The path of the reporter's reports or, if the dump has no paths, the function that reported.
    pub path: String,
    /// The sums of the reporter in each row.
    pub sums: Vec<BlockSums>,
}

/// The maximum number of reporters. The largest reporters are kept.
const MOST_REPORTERS: usize = 100;

impl HeapBlocks {
    /// Groups the blocks of a dump. The mode of the dump determines the kinds of blocks.
    pub fn new(dump: Dump, options: &ProgramOptions) -> Self {
        let of_analysis = AnalyzeOptions::new()
            .max_frames(usize::MAX)
            .limit(usize::MAX)
            .types(true)
            .estimate(true)
            .reporters(true);
        let has_modules = dump.has_modules();
        let analysis = Analysis::new(dump, &of_analysis);
        let paths: Vec<String> =
            analysis.reporters.iter().map(|reporter| CleanText(&reporter.path).to_string()).collect();
        let records = || analysis.sections.iter().flat_map(|section| &section.records);
        let entry = |record: &crate::records::StackRecord| StackEntry {
            side: 0,
            stack: record.alloc,
            weight: record.sums.usable().unsigned_abs(),
        };
        let entries: Vec<StackEntry> = records().map(entry).collect();
        let side = HeapSide { analysis: &analysis, has_modules };
        let (rows, of_entries) = stack_rows(&[side], &entries, MOST_ROWS, options);
        let reporters = reporters(&analysis, &paths, &of_entries, rows.rows().len());
        let mut row_of = of_entries.into_iter();
        let kinds = analysis.sections.iter().map(|section| {
            let mut sums = vec![BlockSums::default(); rows.rows().len()];
            for (record, row) in section.records.iter().zip(&mut row_of) {
                sums[row as usize].add(record.sums);
            }
            BlocksOfKind { kind: section.kind, sums }
        });
        let kinds = kinds.collect();
        let (estimated, has_resident) = (analysis.estimated, analysis.has_resident());
        Self { rows, kinds, reporters, estimated, has_resident, faults: analysis.faults }
    }

    /// Whether the sums contain swapped and untouched bytes.
    pub fn has_resident(&self) -> bool {
        self.has_resident
    }

    /// The rows, and their stacks.
    pub fn rows(&self) -> &StackRows {
        &self.rows
    }

    /// The kinds, each with the blocks of all rows.
    pub fn kinds(&self) -> &[BlocksOfKind] {
        &self.kinds
    }

    /// The reporters, sorted descending by bytes; at most 100.
    pub fn reporters(&self) -> &[BlocksOfReporter] {
        &self.reporters
    }

    /// Reported pointers that do not point to the start of a live block. No row contains them.
    pub fn faults(&self) -> &[ReportFault] {
        &self.faults
    }

    /// Whether the dump is a sample, so that amounts may be estimates.
    pub fn is_estimated(&self) -> bool {
        self.estimated
    }
}

/// The blocks of each reporter. `row_of` contains the row of each record.
fn reporters(analysis: &Analysis, paths: &[String], row_of: &[u32], rows: usize) -> Vec<BlocksOfReporter> {
    let mut by_path: BTreeMap<String, Vec<BlockSums>> = BTreeMap::new();
    let records = analysis.sections.iter().flat_map(|section| &section.records);
    for (record, row) in records.zip(row_of) {
        let path = |nth: usize| match paths.get(record.reporters[nth] as usize) {
            Some(path) if !path.is_empty() => Some(path.clone()),
            _ if record.reps[nth] == CutStackId::NONE => None,
            _ => Some(CleanText(reporter(analysis, record.reps[nth])).to_string()),
        };
        let (first, second) = (path(0), path(1));
        let second = second.filter(|second| Some(second) != first.as_ref());
        for path in [first, second].into_iter().flatten() {
            by_path.entry(path).or_insert_with(|| vec![BlockSums::default(); rows])[*row as usize]
                .add(record.sums);
        }
    }
    let mut all: Vec<_> = by_path.into_iter().map(|(path, sums)| BlocksOfReporter { path, sums }).collect();
    all.sort_by_cached_key(|reporter| Reverse(reporter.sums.iter().map(BlockSums::usable).sum::<i128>()));
    all.truncate(MOST_REPORTERS);
    all
}
