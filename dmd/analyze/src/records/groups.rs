//! The groups of blocks with the same stacks, and the amounts that each block of a dump adds to its group.

use std::sync::Arc;

use super::estimate::StackEstimate;
use super::options::AnalyzeOptions;
use super::report_faults::ReportFault;
use super::stacks::{CutStackId, CutStackTable};
use super::{BlockSums, RecordKind};
use crate::dump::{DumpBlock, FrameTextId, FrameTexts, ReporterAmounts};
use crate::names::{TypeNames, TypeVerdict};

/// Stands for a missing index.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Blocks with the same stacks, without the parts that only a shown record has.
#[derive(Clone, Debug)]
pub(super) struct StackGroup {
    pub(super) sums: BlockSums,
    pub(super) estimated: bool,
    /// The group contains placeholders for smaller blocks.
    pub(super) sampled: bool,
    pub(super) alloc: CutStackId,
    pub(super) reps: [CutStackId; 2],
    /// The indices of the reporters' paths, if the options keep them apart; else [`NOWHERE`].
    pub(super) reporters: [u32; 2],
}

/// A dump with the group of each block.
pub(super) struct GroupedDump {
    pub(super) blocks: Vec<DumpBlock>,
    pub(super) addresses: Vec<u64>,
    /// The group of each block.
    pub(super) groups: Vec<u32>,
    /// The innermost frame of each trace that is not an allocator's. Empty unless the options request a table of
    /// modules.
    pub(super) owners: Vec<Option<FrameTextId>>,
    /// The types of blocks by their traces. Empty unless the options request a table of types.
    pub(super) types: TypeNames,
    /// The reporters by their indices in this dump.
    pub(super) reporters: Vec<ReporterAmounts>,
    /// -1 for the first dump of a difference, else 1.
    pub(super) sign: i128,
}

/// All groups of a dump, or of two.
pub(super) struct StackGroups<'o> {
    pub(super) options: &'o AnalyzeOptions,
    pub(super) kinds: &'static [RecordKind],
    pub(super) texts: FrameTexts,
    pub(super) stacks: CutStackTable,
    /// The type of the blocks of each stack. Empty unless the options request types.
    pub(super) types: Vec<Option<Arc<TypeVerdict>>>,
    /// The stack to show in place of each stack. Empty if every stack shows itself.
    pub(super) shown: Vec<CutStackId>,
    pub(super) all: Vec<StackGroup>,
    pub(super) dumps: Vec<GroupedDump>,
    pub(super) total: BlockSums,
    /// The reporters of all dumps, each path once, with the amounts of the last dump.
    pub(super) reporters: Vec<ReporterAmounts>,
    /// The faults of the last dump.
    pub(super) faults: Vec<ReportFault>,
}

/// The amounts that a block adds to its group.
#[derive(Clone, Copy)]
pub(super) struct GroupAmount {
    pub(super) group: u32,
    pub(super) sums: BlockSums,
    /// The sums are an estimate, or the block is a placeholder for others.
    pub(super) estimated: bool,
}

impl StackGroups<'_> {
    pub(super) fn get(&self, group: u32) -> &StackGroup {
        &self.all[group as usize]
    }

    pub(super) fn is_difference(&self) -> bool {
        self.dumps.len() > 1
    }

    pub(super) fn kind(&self, group: &StackGroup) -> RecordKind {
        match (self.kinds, group.reps) {
            ([only], _) => *only,
            (_, [CutStackId::NONE, _]) => RecordKind::Unreported,
            (_, [_, CutStackId::NONE]) => RecordKind::OnceReported,
            _ => RecordKind::TwiceReported,
        }
    }

    /// The stack to show in place of `stack`.
    pub(super) fn shown(&self, stack: CutStackId) -> CutStackId {
        self.shown.get(stack.index()).copied().unwrap_or(stack)
    }

    /// Calls `each` with every block of a dump, and with the amounts that it adds.
    pub(super) fn count<'d>(&self, dump: &'d GroupedDump, each: impl FnMut(&'d DumpBlock, GroupAmount)) {
        dump.count(self.options.estimate.then_some(|group| self.get(group).reps), each);
    }
}

impl GroupedDump {
    /// As [`StackGroups::count`]. `reports` gives the reports of a group, and is `None` without estimates.
    pub(super) fn count<'d>(
        &'d self,
        reports: Option<impl Fn(u32) -> [CutStackId; 2]>,
        mut each: impl FnMut(&'d DumpBlock, GroupAmount),
    ) {
        let blocks = || self.blocks.iter().zip(self.groups.iter().copied());
        let mut estimate = StackEstimate::default();
        if let Some(reports) = &reports {
            blocks().for_each(|(block, group)| estimate.count(block, reports(group)));
        }
        for (block, group) in blocks() {
            let (sums, is_guess) = match &reports {
                Some(reports) => estimate.stand_in(block, reports(group)),
                None => (BlockSums::from_block(block), false),
            };
            let sums = sums.times(self.sign);
            each(block, GroupAmount { group, sums, estimated: is_guess || block.sampled });
        }
    }
}
