//! Records the start of a block. The order of the steps depends on the options and on the thread.

use core::sync::atomic::Ordering;

use super::Engine;
use super::usable::UsableBytes;
use crate::system::memory;
use crate::system::slot::{self, Inside, slot};
use crate::tables::block_table::{BlockHome, BlockWord, TableBlock};
use crate::tables::events::{EventKind, TableEvent};
use crate::tables::stack::Caller;
use crate::tables::statistics::BlockEnd;
use crate::tables::trace_id::TraceId;
use crate::tables::{observers, thread};

impl Engine {
    /// Records a block. `caller` is the hook: inner frames belong to DMD.
    #[inline(always)]
    pub(crate) fn record(&self, address: usize, requested: usize, usable: UsableBytes, caller: Caller) {
        if !self.records_all() {
            return self.record_sample(address, requested, usable.ask(address), caller);
        }
        if !slot::has_room() {
            return self.drop_block();
        }
        let Some(_inside) = Inside::enter() else {
            return self.record_for_handler(address, requested, usable.ask(address));
        };
        let all = self.full.load(Ordering::Relaxed) && self.below.load(Ordering::Relaxed) == 0;
        let Some(lease) = thread::lease().filter(|_| all) else {
            return self.record_chosen(address, requested, usable.ask(address), caller);
        };
        let home = self.fetch_home(address);
        let trace = lease.with_state(|state| state.stack.trace(caller, self.tree()));
        // The allocator reads the length from the head of the block, which may be in no cache. The result is first used
        // after the walk of the stack, so the processor can load the head during the walk.
        let slop = usable.ask(address).saturating_sub(requested);
        self.record_at(address, home, TableBlock { requested, slop, trace, sampled: false, marked: false });
    }

    /// Like [`record`](Self::record), for any options, and for a thread's first block. The caller is inside the
    /// engine's guard.
    #[inline(never)]
    fn record_chosen(&self, address: usize, requested: usize, usable: usize, caller: Caller) {
        let home = self.fetch_home(address);
        let below = self.below.load(Ordering::Relaxed);
        let taken = thread::with_state(|state| {
            let sampled = usable < below;
            if sampled {
                state.below += usable;
                if state.below < below {
                    return None;
                }
                state.below -= below;
            }
            let wanted = self.full.load(Ordering::Relaxed) || state.sampler.trial(usable);
            let trace = if wanted { state.stack.trace(caller, self.tree()) } else { TraceId::NONE };
            Some((sampled, trace))
        });
        let (sampled, trace) = match taken {
            Some(Some(taken)) => taken,
            Some(None) => return,
            None => (false, TraceId::NONE),
        };
        let slop = usable.saturating_sub(requested);
        self.record_at(address, home, TableBlock { requested, slop, trace, sampled, marked: false });
    }

    /// The place in the table for a block. The table is large, so the place is rarely in a cache: the prefetch loads
    /// it while the engine walks the stack.
    #[inline(always)]
    fn fetch_home(&self, address: usize) -> Option<BlockHome<'_>> {
        let home = self.table().home(address)?;
        memory::prefetch(home.line);
        Some(home)
    }

    /// Records a block. The caller is inside the engine's guard.
    #[inline(always)]
    fn record_at(&self, address: usize, home: Option<BlockHome<'_>>, block: TableBlock) {
        if let Some(home) = home
            && let Some(word) = BlockWord::pack(block)
            && let Some(lease) = thread::lease()
            && home.insert_word(address, word)
        {
            if lease.pending.begin(address, word) {
                lease.settle(self.peak().allowance());
            }
            return;
        }
        self.record_inside(address, block);
    }

    /// Like [`record_at`](Self::record_at), for any block.
    #[inline(never)]
    pub(super) fn record_inside(&self, address: usize, block: TableBlock) {
        if !self.insert(address, block) {
            return;
        }
        let begun = thread::with_lease(|lease| {
            let amount = self.amount(block);
            let event = || TableEvent::now(address, EventKind::Began, self.counted(block));
            lease.settle_after(self.peak().allowance(), event, |pending| {
                pending.begin_other(address, block.trace, amount);
            });
        });
        if begun.is_none() {
            self.begin_alone(address, block);
        }
    }

    /// Records a block of a signal handler that interrupted this thread in the engine. The thread's state is in use,
    /// and the thread may hold a lock.
    #[cold]
    #[inline(never)]
    fn record_for_handler(&self, address: usize, requested: usize, usable: usize) {
        if slot().guard.is_for_the_engine() {
            return;
        }
        if self.take_lost(address).is_some() && self.cumulative.load(Ordering::Relaxed) {
            self.drop_dead_block();
        }
        // A small block counts only for itself here: the sum of small blocks is in the thread's state, which is in
        // use.
        let slop = usable.saturating_sub(requested);
        let block = TableBlock { requested, slop, trace: TraceId::NONE, sampled: false, marked: false };
        if self.table().insert(address, block) {
            self.begin_alone(address, block);
        } else {
            self.drop_block();
        }
    }

    /// Records a block, without a stack, that the program allocated before the engine had its options.
    pub(crate) fn record_early(&self, address: usize, requested: usize, usable: usize) {
        let slop = usable.saturating_sub(requested);
        let block = TableBlock { requested, slop, trace: TraceId::NONE, sampled: false, marked: false };
        if self.insert(address, block) {
            self.begin_alone(address, block);
        }
    }

    /// Adds a block to the table. Returns false if there is no memory for the block.
    #[inline(always)]
    fn insert(&self, address: usize, block: TableBlock) -> bool {
        if let Some(lost) = self.take_lost(address) {
            self.bury(lost);
        }
        let inserted = self.insert_any(address, block);
        if !inserted {
            self.drop_block();
        }
        inserted
    }

    /// Takes out the recorded block at the address of a new block: the program freed the old block without a call of a
    /// hook.
    #[inline(always)]
    fn take_lost(&self, address: usize) -> Option<TableBlock> {
        if self.table().is_live(address) { self.take_live(address) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn take_live(&self, address: usize) -> Option<TableBlock> {
        let lost = self.table().remove(address)?;
        self.count_unseen_free();
        // Observers learn of the old block's end from the start of the new block at the same address.
        self.uncount_sample(address, lost);
        self.end_alone(lost, BlockEnd::Freed);
        Some(lost)
    }

    /// Counts a new block without the state of a thread.
    #[cold]
    fn begin_alone(&self, address: usize, block: TableBlock) {
        observers::observe_alone(address, EventKind::Began, self.counted(block));
        self.counts.begin();
        self.count_alone(block, self.amount(block));
    }
}
