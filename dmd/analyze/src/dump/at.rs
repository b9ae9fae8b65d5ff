//! The blocks of a dump at one time: at the peak, or at the end.

use dmd_format::Mode;

use super::peak::{DumpPeak, DumpStatistics, DumpTime, PeakStack};
use super::trace_id::DumpTraceId;
use super::{Dump, DumpBlock};
use crate::error::AnalyzeError;

impl Dump {
    /// The peak of the heap; `None` for dumps of Firefox and for dumps of scan mode.
    pub fn peak(&self) -> Option<&DumpPeak> {
        self.peak.as_ref()
    }

    /// The number of the process, if the dump has it.
    pub fn process(&self) -> Option<u64> {
        self.process
    }

    /// The counts from the start of DMD until the dump; `None` for dumps of Firefox.
    pub fn statistics(&self) -> Option<&DumpStatistics> {
        self.statistics.as_ref()
    }

    /// The dump with the blocks of one time. A dump of the peak has mode [`Mode::Live`], because no reporter ran at the
    /// peak. Each of its blocks has the mean usable size of its stack's blocks, as a size without slop.
    ///
    /// # Errors
    ///
    /// If the dump does not have the blocks of that time. A dump from a [recording](crate::recording) has the blocks of
    /// one time only.
    pub fn at(mut self, at: DumpTime) -> Result<Self, AnalyzeError> {
        if at == self.shown {
            return Ok(self);
        }
        if at != DumpTime::Peak || self.outline.is_some() {
            return Err(AnalyzeError::OneTime);
        }
        let peak = self.peak.as_ref().ok_or(AnalyzeError::NoPeak)?;
        let sampled = self.sample.is_some();
        self.blocks = peak.stacks.iter().flat_map(|stack| blocks(stack, sampled)).collect();
        self.measurements.counts[0] = self.blocks.len();
        self.mode = Mode::Live;
        self.shown = at;
        self.scanned.clear();
        self.words.clear();
        self.reporters.clear();
        self.faults.clear();
        Ok(self)
    }
}

/// The blocks of a stack as entries of a block list. DMD records only the sum of the sizes at the peak, so each block
/// gets the mean size, rounded down or up so that the sum stays exact.
fn blocks(stack: &PeakStack, sampled: bool) -> impl Iterator<Item = DumpBlock> + use<> {
    let PeakStack { alloc, num, bytes } = *stack;
    let (size, larger) = (bytes / num, bytes % num);
    let of_size = move |(req, num)| DumpBlock {
        req,
        slop: 0,
        num,
        alloc,
        reps: [DumpTraceId::NONE; 2],
        reporters: [u32::MAX; 2],
        sampled,
        // DMD has already weighted the sums.
        weight: 1.0,
    };
    let sizes = [(size, num - larger), (size.saturating_add(1), larger)];
    sizes.into_iter().filter(|(_, num)| *num > 0).map(of_size)
}
