//! A block begins: a hook records it, in the order of steps that fits its options and its thread.

use core::sync::atomic::Ordering;

use super::Engine;
use super::usable::Usable;
use crate::system::memory;
use crate::system::slot::{self, Inside, slot};
use crate::tables::block_table::{Block, Home, Word};
use crate::tables::events::{Event, Happened};
use crate::tables::stack::Caller;
use crate::tables::statistics::End;
use crate::tables::trace_id::TraceId;
use crate::tables::{observers, thread};

impl Engine {
    /// Records a block. `caller` is the hook: frames further in belong to DMD.
    #[inline(always)]
    pub(crate) fn record(&self, address: usize, requested: usize, usable: Usable, caller: Caller) {
        if !self.records_all() {
            return self.record_sample(address, requested, usable.of(address), caller);
        }
        if !slot::has_room() {
            return self.drop_block();
        }
        let Some(_inside) = Inside::enter() else {
            return self.record_for_handler(address, requested, usable.of(address));
        };
        let all = self.full.load(Ordering::Relaxed) && self.below.load(Ordering::Relaxed) == 0;
        let Some(lease) = thread::lease().filter(|_| all) else {
            return self.record_chosen(address, requested, usable.of(address), caller);
        };
        let home = self.fetch_home(address);
        let trace = lease.with_state(|state| state.stack.trace(caller, self.tree()));
        // The head of the block, which says how long the block is, may be in no cache either: the walk does not wait for
        // it.
        let slop = usable.of(address).saturating_sub(requested);
        self.record_at(address, home, Block { requested, slop, trace, sampled: false, marked: false });
    }

    /// [`record`](Self::record) for any options, and for a thread's first block. The thread is inside.
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
        self.record_at(address, home, Block { requested, slop, trace, sampled, marked: false });
    }

    /// Where a block is to be recorded. The line is rarely in a cache, since the table is large: it comes while the engine
    /// walks the stack.
    #[inline(always)]
    fn fetch_home(&self, address: usize) -> Option<Home<'_>> {
        let home = self.table().home(address)?;
        memory::prefetch(home.line);
        Some(home)
    }

    /// Records a block of a thread that is inside.
    #[inline(always)]
    fn record_at(&self, address: usize, home: Option<Home<'_>>, block: Block) {
        if let Some(home) = home
            && let Some(word) = Word::of(block)
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

    /// [`record_at`](Self::record_at) for any block.
    #[inline(never)]
    pub(super) fn record_inside(&self, address: usize, block: Block) {
        if !self.insert(address, block) {
            return;
        }
        let begun = thread::with_lease(|lease| {
            let amount = self.amount(block);
            let event = || Event::now(address, Happened::Began, self.counted(block));
            lease.settle_after(self.peak().allowance(), event, |pending| {
                pending.begin_other(address, block.trace, amount);
            });
        });
        if begun.is_none() {
            self.begin_alone(address, block);
        }
    }

    /// Records a block of a signal handler that interrupted this thread in the engine. The thread's state is in
    /// use, and the thread may hold a lock.
    #[cold]
    #[inline(never)]
    fn record_for_handler(&self, address: usize, requested: usize, usable: usize) {
        if slot().guard.is_for_the_engine() {
            return;
        }
        if self.take_lost(address).is_some() && self.cumulative.load(Ordering::Relaxed) {
            self.drop_dead_block();
        }
        // A small block stands for itself alone: the sum of small blocks is in the thread's state.
        let slop = usable.saturating_sub(requested);
        let block = Block { requested, slop, trace: TraceId::NONE, sampled: false, marked: false };
        if self.table().insert(address, block) {
            self.begin_alone(address, block);
        } else {
            self.drop_block();
        }
    }

    /// Records a block, without a stack, that the program allocated before the engine had its options.
    pub(crate) fn record_early(&self, address: usize, requested: usize, usable: usize) {
        let slop = usable.saturating_sub(requested);
        let block = Block { requested, slop, trace: TraceId::NONE, sampled: false, marked: false };
        if self.insert(address, block) {
            self.begin_alone(address, block);
        }
    }

    /// False if there is no memory for the block.
    #[inline(always)]
    fn insert(&self, address: usize, block: Block) -> bool {
        if let Some(lost) = self.take_lost(address) {
            self.bury(lost);
        }
        let inserted = self.insert_any(address, block);
        if !inserted {
            self.drop_block();
        }
        inserted
    }

    /// The block that was recorded where a new one begins: the program freed it where no hook saw it.
    #[inline(always)]
    fn take_lost(&self, address: usize) -> Option<Block> {
        if self.table().is_live(address) { self.take_live(address) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn take_live(&self, address: usize) -> Option<Block> {
        let lost = self.table().remove(address)?;
        // Observers see it by the begin of the next block, which takes its place.
        self.uncount_sample(address, lost);
        self.end_alone(lost, End::Freed);
        Some(lost)
    }

    /// Counts a new block without the state of a thread.
    #[cold]
    fn begin_alone(&self, address: usize, block: Block) {
        observers::observe_alone(address, Happened::Began, self.counted(block));
        self.counts.begin();
        self.count_alone(block, self.amount(block));
    }
}
