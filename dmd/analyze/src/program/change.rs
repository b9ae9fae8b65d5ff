//! Compares two heaps, as data for a web page: the blocks of each stack before and after.

use dmd_format::Mode;

use super::ProgramOptions;
use super::stack_rows::{HeapSide, MOST_ROWS, StackEntry, StackRows, stack_rows};
use crate::dump::Dump;
use crate::error::AnalyzeError;
use crate::records::{Analysis, AnalyzeOptions, BlockSums};

/// The blocks of two dumps by stack. Stacks are compared by functions and files, so that two builds of a program have
/// the same stacks.
#[derive(Clone, Debug)]
pub struct HeapChange {
    rows: StackRows,
    changes: Vec<BeforeAfter>,
    estimated: bool,
}

/// The blocks of a row in both dumps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BeforeAfter {
    /// The sums in the first dump.
    pub before: BlockSums,
    /// The sums in the second dump.
    pub after: BlockSums,
}

impl HeapChange {
    /// Compares two dumps.
    ///
    /// # Errors
    ///
    /// Returns an error if the dumps have different modes. Live, scan and dark-matter count as the same mode: the
    /// comparison ignores reports.
    pub fn new(before: Dump, after: Dump, options: &ProgramOptions) -> Result<Self, AnalyzeError> {
        let dumps = [before.without_reports(), after.without_reports()];
        let [first, second] =
            dumps.each_ref().map(|dump| if dump.mode == Mode::Scan { Mode::Live } else { dump.mode });
        if first != second {
            return Err(AnalyzeError::DifferentModes(first, second));
        }
        let of_analysis = AnalyzeOptions::new()
            .max_frames(usize::MAX)
            .limit(usize::MAX)
            .types(true)
            .without_lines(true)
            .estimate(true);
        let has_modules = dumps.each_ref().map(Dump::has_modules);
        let analyses = dumps.map(|dump| Analysis::new(dump, &of_analysis));
        let records = |side: usize| analyses[side].sections.iter().flat_map(|section| &section.records);
        let mut entries = Vec::new();
        let mut amounts = Vec::new();
        for (side, record) in records(0).map(|record| (0, record)).chain(records(1).map(|record| (1, record)))
        {
            entries.push(StackEntry {
                side,
                stack: record.alloc,
                weight: record.sums.usable().unsigned_abs(),
            });
            amounts.push(record.sums);
        }
        let sides = [0, 1].map(|side| HeapSide { analysis: &analyses[side], has_modules: has_modules[side] });
        let (rows, of_entries) = stack_rows(&sides, &entries, MOST_ROWS, options);
        let mut changes = vec![BeforeAfter::default(); rows.rows().len()];
        for ((entry, sums), row) in entries.iter().zip(amounts).zip(of_entries) {
            let change = &mut changes[row as usize];
            let side = if entry.side == 0 { &mut change.before } else { &mut change.after };
            side.add(sums);
        }
        let estimated = analyses.iter().any(|analysis| analysis.estimated);
        Ok(Self { rows, changes, estimated })
    }

    /// The rows, with their stacks.
    pub fn rows(&self) -> &StackRows {
        &self.rows
    }

    /// The change of each row.
    pub fn changes(&self) -> &[BeforeAfter] {
        &self.changes
    }

    /// Whether a dump is a sample, so that amounts may be estimates.
    pub fn is_estimated(&self) -> bool {
        self.estimated
    }
}
