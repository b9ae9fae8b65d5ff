//! One heap as a page shows it: what each stack has, apart by how often reporters reported it.

use super::ProgramOptions;
use super::stack_rows::{Entry, MOST_ROWS, Side, StackRows, stack_rows};
use crate::dump::Dump;
use crate::options::AnalyzeOptions;
use crate::records::{Analysis, RecordKind, Sums};

/// The blocks of a dump by stack and kind.
#[derive(Clone, Debug)]
pub struct HeapBlocks {
    rows: StackRows,
    kinds: Vec<BlocksOfKind>,
    estimated: bool,
}

/// The blocks of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlocksOfKind {
    /// The kind.
    pub kind: RecordKind,
    /// The sums of each row.
    pub sums: Vec<Sums>,
}

impl HeapBlocks {
    /// Groups the blocks of a dump. The mode of the dump decides which kinds there are.
    pub fn new(dump: Dump, options: &ProgramOptions) -> Self {
        let of_analysis = AnalyzeOptions::new()
            .max_frames(usize::MAX)
            .limit(usize::MAX)
            .types(true)
            .without_lines(true)
            .estimate(true);
        let has_modules = dump.has_modules();
        let analysis = Analysis::new(dump, &of_analysis);
        let records = || analysis.sections.iter().flat_map(|section| &section.records);
        let entry = |record: &crate::records::Record| Entry {
            side: 0,
            stack: record.alloc,
            weight: record.sums.usable().unsigned_abs(),
        };
        let entries: Vec<Entry> = records().map(entry).collect();
        let side = Side { analysis: &analysis, has_modules };
        let (rows, of_entries) = stack_rows(&[side], &entries, MOST_ROWS, options);
        let mut row_of = of_entries.into_iter();
        let kinds = analysis.sections.iter().map(|section| {
            let mut sums = vec![Sums::default(); rows.rows().len()];
            for (record, row) in section.records.iter().zip(&mut row_of) {
                sums[row as usize].add(record.sums);
            }
            BlocksOfKind { kind: section.kind, sums }
        });
        let kinds = kinds.collect();
        let estimated = analysis.estimated;
        Self { rows, kinds, estimated }
    }

    /// The rows, with their stacks.
    pub fn rows(&self) -> &StackRows {
        &self.rows
    }

    /// The kinds, each with the blocks of all rows.
    pub fn kinds(&self) -> &[BlocksOfKind] {
        &self.kinds
    }

    /// Whether the dump is a sample, so that all amounts are estimates.
    pub fn is_estimated(&self) -> bool {
        self.estimated
    }
}
