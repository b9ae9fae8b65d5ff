//! The blocks of a dump at one time: at the peak, or at the end.

use dmd_format::Mode;
use rustc_hash::FxHashMap;

use super::peak::{DumpPeak, DumpStatistics, DumpTime, PeakStack};
use super::trace_id::DumpTraceId;
use super::{Dump, DumpBlock};
use crate::error::AnalyzeError;

impl Dump {
    /// The peak of the heap; `None` for dumps of Firefox and for dumps of scan mode.
    pub fn peak(&self) -> Option<&DumpPeak> {
        self.peak.as_ref()
    }

    /// The process id; `None` if the dump does not contain it.
    pub fn process(&self) -> Option<u64> {
        self.process
    }

    /// The counts from the start of DMD until the dump; `None` for dumps of Firefox.
    pub fn statistics(&self) -> Option<&DumpStatistics> {
        self.statistics.as_ref()
    }

    /// The dump with the blocks of one time. At the peak, each block has the mean usable size of its stack's blocks as
    /// its requested size, and no slop. Reporters do not run at the peak: a block at the peak counts as reported if
    /// reporters reported a block of the same stack later. If reporters reported no block with a known stack, the mode
    /// at the peak is [`Mode::Live`].
    ///
    /// # Errors
    ///
    /// Returns an error if the dump does not have the blocks of that time. A dump from a [recording](crate::recording)
    /// has the blocks of one time only.
    pub fn at(mut self, at: DumpTime) -> Result<Self, AnalyzeError> {
        if at == self.shown {
            return Ok(self);
        }
        if at != DumpTime::Peak || self.outline.is_some() {
            return Err(AnalyzeError::OneTime);
        }
        let reports = self.reports_by_stack();
        let peak = self.peak.as_ref().ok_or(AnalyzeError::NoPeak)?;
        let sampled = self.sample.is_some();
        let with_reports = |stack: &PeakStack| {
            let reports = reports.get(&stack.alloc.0).copied().unwrap_or(NO_REPORTS);
            blocks(stack, sampled, reports)
        };
        self.blocks = peak.stacks.iter().flat_map(with_reports).collect();
        self.measurements.counts[0] = self.blocks.len();
        if reports.is_empty() {
            self.mode = Mode::Live;
            self.reporters.clear();
        }
        // The reporters' amounts describe the end, not the peak.
        for reporter in &mut self.reporters {
            (reporter.claimed, reporter.marked) = (0, 0);
        }
        self.shown = at;
        self.has_means = true;
        self.scanned.clear();
        self.words.clear();
        self.faults.clear();
        Ok(self)
    }

    /// Whether reporters have reported a block whose stack is known.
    pub fn has_reports(&self) -> bool {
        self.mode == Mode::DarkMatter && self.blocks.iter().any(is_reported_of_stack)
    }

    /// The reports of each stack with a reported block. A stack with several reported blocks has the reports of one
    /// block.
    fn reports_by_stack(&self) -> FxHashMap<u32, BlockReports> {
        let is_known = |block: &&DumpBlock| self.mode == Mode::DarkMatter && is_reported_of_stack(block);
        let reported = self.blocks.iter().filter(is_known);
        reported.map(|block| (block.alloc.0, (block.reps, block.reporters))).collect()
    }
}

fn is_reported_of_stack(block: &DumpBlock) -> bool {
    block.reps[0].index().is_some() && block.alloc.index().is_some()
}

/// The stacks of the reports of a block, and the reporters.
type BlockReports = ([DumpTraceId; 2], [u32; 2]);

const NO_REPORTS: BlockReports = ([DumpTraceId::NONE; 2], [u32::MAX; 2]);

/// The blocks of a stack as entries of a block list. DMD records only the sum of the sizes at the peak.
fn blocks(
    stack: &PeakStack,
    sampled: bool,
    (reps, reporters): BlockReports,
) -> impl Iterator<Item = DumpBlock> + use<> {
    let PeakStack { alloc, num, bytes } = *stack;
    // DMD has already weighted the sums.
    let blocks = DumpBlock::with_mean_size(alloc, num, bytes, 1.0);
    blocks.map(move |block| DumpBlock { reps, reporters, sampled, ..block })
}
