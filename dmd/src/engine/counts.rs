//! Counts of recorded blocks, and of blocks that the engine could not record.

use core::sync::atomic::Ordering;

use super::Engine;
use crate::system::slot;
use crate::tables::block_table::TableBlock;
use crate::tables::pending::BlockAmount;
use crate::tables::statistics::{BlockEnd, EventStatistics};
use crate::tables::thread;

impl Engine {
    /// The number of blocks that the engine did not record, because memory or stack space was short, or because a
    /// signal handler left the hook with a jump such as `longjmp`.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed) + slot::jumps().load(Ordering::Relaxed)
    }

    /// The number of freed blocks that the engine did not count, because memory or room on the stack was short, or
    /// because a signal handler freed them.
    pub(crate) fn dropped_dead(&self) -> u64 {
        self.dropped_dead.load(Ordering::Relaxed)
    }

    /// The number of blocks whose end no hook has seen: the allocator gave their address to another block.
    pub(crate) fn unseen_frees(&self) -> u64 {
        self.unseen_frees.load(Ordering::Relaxed)
    }

    /// The number of reports that the engine did not keep, because memory or room on the stack was short.
    pub(crate) fn dropped_reports(&self) -> u64 {
        self.unmarked.load(Ordering::Relaxed)
    }

    #[cold]
    pub(super) fn drop_block(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    pub(super) fn count_unseen_free(&self) {
        self.unseen_frees.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    pub(super) fn drop_dead_block(&self) {
        self.dropped_dead.fetch_add(1, Ordering::Relaxed);
    }

    /// The block with the sizes that dumps show. A sampled small block gets the bytes of all blocks that it represents.
    /// A block of a sample by bytes keeps its own sizes, and readers weigh it.
    #[inline(always)]
    pub(crate) fn counted(&self, block: TableBlock) -> TableBlock {
        match block.sampled {
            true => self.counted_sample(block),
            false => block,
        }
    }

    /// The numbers of allocations, frees and other events of all threads.
    pub(crate) fn statistics(&self) -> EventStatistics {
        let mut statistics = EventStatistics::default();
        statistics.add(&self.counts);
        thread::for_each_pending(|pending| pending.add_to(&mut statistics));
        statistics
    }

    /// Counts the end of a block without the state of a thread.
    #[cold]
    pub(super) fn end_alone(&self, block: TableBlock, end: BlockEnd) {
        self.counts.end(end);
        self.count_alone(block, self.amount(block).negative());
    }

    pub(super) fn count_alone(&self, block: TableBlock, amount: BlockAmount) {
        self.peak().add(self.tree(), block.trace, amount);
    }
}
