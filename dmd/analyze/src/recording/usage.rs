//! The allocations of each stack, the blocks that one thread allocated and another freed, and the blocks that only
//! grew.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::replay::{BlockEnd, MoveChain, OLDER, ReplayObserver, ReplayedBlock};

/// The maximum number of pairs of threads. Further pairs are counted together.
const MAX_PAIRS: usize = 1 << 16;

/// The blocks of one stack.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StackUse {
    pub(crate) stack: u32,
    /// Allocations and reallocations.
    pub(crate) allocations: u64,
    pub(crate) temporary: u64,
    now: u64,
    /// The most live bytes.
    pub(crate) highest: u64,
}

/// The use of each stack that allocated.
#[derive(Debug, Default)]
pub(crate) struct StackUsage {
    /// For each stack, its index in `all` plus 1.
    index: Vec<u32>,
    all: Vec<StackUse>,
}

impl StackUsage {
    /// The stacks in the order of their first block.
    pub(crate) fn stacks(&self) -> &[StackUse] {
        &self.all
    }

    #[inline]
    fn entry(&mut self, stack: u32) -> &mut StackUse {
        let at = stack as usize;
        if at >= self.index.len() {
            self.index.resize(at + 1, 0);
        }
        let index = &mut self.index[at];
        if *index == 0 {
            self.all.push(StackUse { stack, ..StackUse::default() });
            *index = self.all.len() as u32;
        }
        &mut self.all[*index as usize - 1]
    }
}

impl ReplayObserver for StackUsage {
    fn began(&mut self, _: u64, block: &ReplayedBlock, _: bool) {
        let usage = self.entry(block.stack);
        usage.allocations += u64::from(block.thread != OLDER);
        usage.now = usage.now.saturating_add(block.usable());
        usage.highest = usage.highest.max(usage.now);
    }

    fn ended(&mut self, block: &ReplayedBlock, end: &BlockEnd) {
        let usage = self.entry(block.stack);
        usage.now = usage.now.saturating_sub(block.usable());
        usage.temporary += u64::from(end.temporary);
    }
}

/// Blocks that one thread allocated and another thread freed or moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForeignFrees {
    pub(crate) blocks: u64,
    pub(crate) bytes: u128,
}

/// Moved blocks of one stack that only grew.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GrownChains {
    pub(crate) blocks: u64,
    pub(crate) moves: u64,
    pub(crate) copied: u128,
    /// The block that grew to the largest size.
    pub(crate) largest: MoveChain,
}

/// The figures of a history, except its lines.
#[derive(Debug, Default)]
pub(crate) struct UsageFindings {
    pub(crate) usage: StackUsage,
    /// The blocks by the pair of the allocating and the freeing thread.
    pairs: FxHashMap<(u32, u32), ForeignFrees>,
    /// The blocks of further pairs.
    pub(crate) other_pairs: ForeignFrees,
    /// The blocks by the stack of the last move.
    pub(crate) grown: BTreeMap<u32, GrownChains>,
}

impl UsageFindings {
    /// The pairs of the allocating and the freeing thread, sorted descending by blocks.
    pub(crate) fn pairs(&self) -> Vec<((u32, u32), ForeignFrees)> {
        let mut pairs: Vec<_> = self.pairs.iter().map(|(pair, freed)| (*pair, *freed)).collect();
        pairs.sort_by_key(|(pair, freed)| (core::cmp::Reverse((freed.blocks, freed.bytes)), *pair));
        pairs
    }
}

impl ReplayObserver for UsageFindings {
    fn began(&mut self, tick: u64, block: &ReplayedBlock, moved: bool) {
        self.usage.began(tick, block, moved);
    }

    fn ended(&mut self, block: &ReplayedBlock, end: &BlockEnd) {
        self.usage.ended(block, end);
        if block.thread != end.thread && block.thread != OLDER {
            let is_full = self.pairs.len() >= MAX_PAIRS;
            let freed = match self.pairs.get_mut(&(block.thread, end.thread)) {
                Some(freed) => freed,
                None if is_full => &mut self.other_pairs,
                None => self.pairs.entry((block.thread, end.thread)).or_default(),
            };
            freed.blocks += 1;
            freed.bytes += u128::from(block.usable());
        }
    }

    fn chain(&mut self, chain: &MoveChain) {
        if chain.shrank || chain.last <= chain.first {
            return;
        }
        let grown = self.grown.entry(chain.stack).or_default();
        grown.blocks += 1;
        grown.moves += chain.moves;
        grown.copied += chain.copied;
        if chain.last > grown.largest.last {
            grown.largest = *chain;
        }
    }
}
