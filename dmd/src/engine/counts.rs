//! What blocks count for, and what the engine could not record.

use core::sync::atomic::Ordering;

use super::Engine;
use crate::system::slot;
use crate::tables::block_table::Block;
use crate::tables::pending::Amount;
use crate::tables::statistics::{End, Statistics};
use crate::tables::thread;

impl Engine {
    /// Blocks that the engine did not record: memory or room on the stack was short, or a jump left the hook.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed) + slot::jumps().load(Ordering::Relaxed)
    }

    /// Freed blocks that the engine did not count: memory or room on the stack was short, or a signal handler freed
    /// them.
    pub(crate) fn dropped_dead(&self) -> u64 {
        self.dropped_dead.load(Ordering::Relaxed)
    }

    /// Reports that the engine did not keep: memory or room on the stack was short.
    pub(crate) fn dropped_reports(&self) -> u64 {
        self.unmarked.load(Ordering::Relaxed)
    }

    #[cold]
    pub(super) fn drop_block(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    pub(super) fn drop_dead_block(&self) {
        self.dropped_dead.fetch_add(1, Ordering::Relaxed);
    }

    /// A block as dumps count it: a sample of small blocks has the bytes of all blocks that it stands for. A sample by
    /// bytes has its own, which readers weigh.
    #[inline(always)]
    pub(crate) fn counted(&self, block: Block) -> Block {
        match block.sampled {
            true => self.counted_sample(block),
            false => block,
        }
    }

    /// Allocations, frees and the like of all threads.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::default();
        statistics.add(&self.counts);
        thread::for_each_pending(|pending| pending.add_to(&mut statistics));
        statistics
    }

    /// Counts the end of a block without the state of a thread.
    #[cold]
    pub(super) fn end_alone(&self, block: Block, end: End) {
        self.counts.end(end);
        self.count_alone(block, self.amount(block).negative());
    }

    pub(super) fn count_alone(&self, block: Block, amount: Amount) {
        self.peak().add(self.tree(), block.trace, amount);
    }
}
