//! The groups of blocks with the same stacks, and the amounts that each block of a dump adds to its group.

use std::sync::Arc;

use super::estimate::StackEstimate;
use super::options::AnalyzeOptions;
use super::report_faults::ReportFault;
use super::stacks::{CutStackId, CutStackTable};
use super::{BlockSums, RecordKind};
use crate::dump::{DumpBlock, FrameTextId, FrameTexts, ReporterAmounts};
use crate::names::{TypeNames, TypeVerdict};

/// A missing index.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Blocks with the same stacks, without the data that only shown records need.
#[derive(Clone, Debug)]
pub(super) struct StackGroup {
    pub(super) sums: BlockSums,
    pub(super) estimated: bool,
    /// Whether the group contains blocks whose amounts are estimates from a sample.
    pub(super) sampled: bool,
    pub(super) alloc: CutStackId,
    pub(super) reps: [CutStackId; 2],
    /// The indices of the reporters' paths, if the options separate reporters; else [`NOWHERE`].
    pub(super) reporters: [u32; 2],
}

/// A dump with the group of each block.
pub(super) struct GroupedDump {
    pub(super) blocks: Vec<DumpBlock>,
    pub(super) addresses: Vec<u64>,
    /// The group of each block.
    pub(super) groups: Vec<u32>,
    /// The site of each trace, from `CutStacks`. Empty unless the options request a table of modules.
    pub(super) owners: Vec<Option<FrameTextId>>,
    /// The types of blocks, by trace. Empty unless the options need types.
    pub(super) types: TypeNames,
    /// The reporters by their indices in this dump.
    pub(super) reporters: Vec<ReporterAmounts>,
    /// -1 for the first dump of a difference; 1 otherwise.
    pub(super) sign: i128,
}

/// All groups of one dump or of two.
pub(super) struct StackGroups<'o> {
    pub(super) options: &'o AnalyzeOptions,
    pub(super) kinds: &'static [RecordKind],
    pub(super) texts: FrameTexts,
    pub(super) stacks: CutStackTable,
    /// The type of the blocks of each stack. Empty unless the options request types.
    pub(super) types: Vec<Option<Arc<TypeVerdict>>>,
    /// The stack that replaces each stack in the output. Empty if no stack is replaced.
    pub(super) shown: Vec<CutStackId>,
    pub(super) all: Vec<StackGroup>,
    pub(super) dumps: Vec<GroupedDump>,
    pub(super) total: BlockSums,
    /// The reporters of all dumps, each path once. The amounts are from the last dump.
    pub(super) reporters: Vec<ReporterAmounts>,
    /// The faults of the last dump.
    pub(super) faults: Vec<ReportFault>,
}

/// The amounts that a block adds to its group.
#[derive(Clone, Copy)]
pub(super) struct GroupAmount {
    pub(super) group: u32,
    pub(super) sums: BlockSums,
    /// Whether the sums are an estimate, or the block represents other blocks.
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

    /// The stack that replaces `stack` in the output.
    pub(super) fn shown(&self, stack: CutStackId) -> CutStackId {
        self.shown.get(stack.index()).copied().unwrap_or(stack)
    }

    /// Calls `each` for every block of a dump, with the amounts that the block adds.
    pub(super) fn count<'d>(&self, dump: &'d GroupedDump, each: impl FnMut(&'d DumpBlock, GroupAmount)) {
        dump.count(self.options.estimate.then_some(|group| self.get(group).reps), each);
    }
}

impl GroupedDump {
    /// Implements [`StackGroups::count`]. `reports` returns the reports of a group; it is `None` if there is no
    /// estimate.
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
