//! Merges blocks that are alike.

use super::at_peak::LiveStacks;
use crate::engine::ENGINE;
use crate::options::Mode;
use crate::system::pages::{self, DumpMap, DumpVec};
use crate::tables::block_table::Block;
use crate::tables::dead_blocks::DeadKind;
use crate::tables::mark::Reports;
use crate::tables::trace_id::TraceId;

/// All that a dump says about a block, except its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockKind {
    pub(super) requested: usize,
    pub(super) slop: usize,
    pub(super) trace: TraceId,
    pub(super) sampled: bool,
    pub(super) reports: Reports,
}

impl BlockKind {
    pub(super) fn of(block: Block) -> Self {
        let Block { requested, slop, trace, sampled, .. } = ENGINE.counted(block);
        Self { requested, slop, trace, sampled, reports: Reports::default() }
    }

    pub(super) fn of_dead(dead: DeadKind) -> Self {
        let DeadKind { requested, slop, trace, sampled } = dead;
        Self { requested, slop, trace, sampled, reports: Reports::default() }
    }
}

/// Calls `each` for every live block, and in cumulative mode for freed ones, with a lock of these held. Adds the
/// live ones to `stacks`.
pub(super) fn for_each(mode: Mode, stacks: &mut LiveStacks, mut each: impl FnMut(BlockKind, u64)) {
    *stacks = LiveStacks::new();
    ENGINE.table().for_each(|address, block| {
        stacks.add(block.trace, ENGINE.amount(block));
        let mut kind = BlockKind::of(block);
        if block.marked {
            kind.reports = ENGINE.marks.get(address);
        }
        each(kind, 1);
    });
    if mode == Mode::Cumulative {
        ENGINE.dead.for_each(|dead, count| each(BlockKind::of_dead(dead), count));
    }
}

/// Kinds in order of their first block, with their counts.
pub(super) struct LiveBlocks {
    places: DumpMap<BlockKind, u32>,
    list: DumpVec<(BlockKind, u64)>,
}

impl LiveBlocks {
    fn new() -> Self {
        Self { places: pages::map(), list: pages::list() }
    }

    /// Merges all blocks by kind. Gives `None` if there is not enough memory for the kinds.
    pub(super) fn merged(mode: Mode, stacks: &mut LiveStacks) -> Option<Self> {
        let mut live = Self::new();
        let mut fits = true;
        for_each(mode, stacks, |kind, count| fits = fits && live.add(kind, count));
        fits.then_some(live)
    }

    /// False if there is no memory.
    fn add(&mut self, kind: BlockKind, count: u64) -> bool {
        let next = self.list.len() as u32;
        let Some(place) = pages::entry(&mut self.places, kind, || next).map(|place| *place) else {
            return false;
        };
        match self.list.get_mut(place as usize) {
            Some((_, known)) => {
                *known += count;
                true
            }
            None => pages::push(&mut self.list, (kind, count)),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(BlockKind, u64)> {
        self.list.iter()
    }
}
