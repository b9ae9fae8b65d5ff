//! Blocks that are alike, merged.

use crate::dead_blocks::DeadKind;
use crate::engine::ENGINE;
use crate::mark::Reports;
use crate::pages::{self, PageMap, PageVec};
use crate::table::Block;
use crate::trace_tree::TraceId;

/// All that a dump says of a block, but for its address.
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

/// Kinds in order of their first block, with their counts.
pub(super) struct LiveBlocks {
    places: PageMap<BlockKind, u32>,
    list: PageVec<(BlockKind, u64)>,
}

impl LiveBlocks {
    pub(super) fn new() -> Self {
        Self { places: pages::map(), list: pages::list() }
    }

    /// False if there is no memory.
    pub(super) fn add(&mut self, kind: BlockKind, count: u64) -> bool {
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
