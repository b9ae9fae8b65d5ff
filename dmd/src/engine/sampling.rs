//! Recording a sample by bytes.
//!
//! Hooks first ask [`Engine::passes_over`] and [`Engine::has_no_record`], which cost a few instructions: most blocks are
//! not sampled, and leave no trace. A thread counts its bytes down to the next sample in its slot. The session number
//! tells a thread that its countdown is of an earlier session, whose mean distance may be another.

use core::sync::atomic::Ordering;

use super::{Engine, Phase, SAMPLED};
use crate::system::slot::{self, Inside, slot};
use crate::tables::block_table::Block;
use crate::tables::pending::Amount;
use crate::tables::stack::Caller;
use crate::tables::thread;
use dmd_format::sample;

/// No slot has this number.
pub(super) const NO_SESSION: u32 = 1;

/// The largest mean distance, in bytes. A sample of a larger one would have no block.
pub(super) const LARGEST_MEAN: usize = 1 << 40;

impl Engine {
    /// The mean distance in bytes of samples by bytes; 0 if the engine takes none.
    pub(crate) fn mean(&self) -> usize {
        self.mean.load(Ordering::Relaxed)
    }

    /// Whether the engine samples by bytes and does not sample a new block of this size. The caller asks once for each
    /// block, and does not record such a block.
    #[inline(always)]
    pub(crate) fn passes_over(&self, requested: usize) -> bool {
        let slot = slot();
        // A block of another hook, or of the engine itself, does not count.
        slot.session.get() == self.session.load(Ordering::Relaxed)
            && !slot.guard.is_used()
            && count_down(slot, requested)
    }

    /// Whether it is certain that the engine has no record of this block.
    #[inline(always)]
    pub(crate) fn has_no_record(&self, address: usize) -> bool {
        match self.phase() {
            Phase::Sampling => !SAMPLED.may_have(address),
            phase => phase == Phase::Waiting,
        }
    }

    /// Records a block if it is sampled. `caller` as for [`record`](Self::record).
    #[inline(never)]
    pub(super) fn record_sample(&self, address: usize, requested: usize, usable: usize, caller: Caller) {
        if self.phase() != Phase::Sampling || !slot::has_room() {
            return;
        }
        // A handler that interrupts the engine allocates too little to matter.
        let Some(_inside) = Inside::enter() else { return };
        let slot = slot();
        let session = self.session.load(Ordering::Relaxed);
        let mean = self.mean() as u64;
        let trace = thread::with_state(|state| {
            let mut next = || state.byte_sampler.next(mean) as usize;
            if slot.session.get() != session {
                slot.skip.set(next());
                slot.session.set(session);
            }
            if count_down(slot, requested) {
                return None;
            }
            slot.skip.set(next());
            Some(state.stack.trace(caller, self.tree()))
        });
        let trace = match trace {
            Some(Some(trace)) => trace,
            Some(None) => return,
            None => return self.drop_block(),
        };
        let slop = usable.saturating_sub(requested);
        SAMPLED.add(address);
        self.record_inside(address, Block { requested, slop, trace, sampled: true, marked: false });
    }

    /// Records a block again that the table has forgotten; false if there is no memory, or no room on the stack.
    pub(super) fn insert_again(&self, address: usize, block: Block) -> bool {
        if !block.sampled || self.mean() == 0 {
            return self.table().insert(address, block);
        }
        Self::enter_with_room().is_some_and(|_inside| {
            SAMPLED.add(address);
            self.insert_any(address, block)
        })
    }

    /// Notes that the table has forgotten a block.
    pub(super) fn forget_sample(&self, address: usize, block: Block) {
        if self.uncount_sample(address, block)
            && let Some(_inside) = Self::enter_with_room()
        {
            self.table().forget_page(address);
        }
    }

    /// Removes a block from the filter; false if it is not of a sample by bytes.
    pub(super) fn uncount_sample(&self, address: usize, block: Block) -> bool {
        let is_sample = block.sampled && self.mean() > 0;
        if is_sample {
            SAMPLED.remove(address);
        }
        is_sample
    }

    /// False if there is no memory for the block. The caller is inside the engine if the block is sampled by bytes.
    #[inline(always)]
    pub(super) fn insert_any(&self, address: usize, block: Block) -> bool {
        if !block.sampled || self.mean() == 0 {
            return self.table().insert(address, block);
        }
        let inserted = self.table().insert_sampled(address, block);
        if !inserted {
            SAMPLED.remove(address);
        }
        inserted
    }

    #[cold]
    pub(super) fn counted_sample(&self, block: Block) -> Block {
        match self.mean() {
            0 => Block { requested: self.below.load(Ordering::Relaxed), slop: 0, ..block },
            _ => Block { sampled: false, ..block },
        }
    }

    /// How many blocks of its size a block stands for.
    fn weight(&self, block: Block) -> f64 {
        match self.mean() {
            mean if mean > 0 && block.sampled => sample::weight(block.requested as u64, mean as u64),
            _ => 1.0,
        }
    }

    /// The blocks and requested bytes that a block stands for.
    #[inline]
    pub(crate) fn amount(&self, block: Block) -> Amount {
        if !block.sampled || self.mean() == 0 {
            return Amount::of(self.counted(block));
        }
        let weight = self.weight(block);
        Amount { blocks: weight.round() as i64, bytes: (weight * block.requested as f64).round() as i64 }
    }

    /// The number of blocks of its size that a block stands for, rounded.
    #[cfg(feature = "analyze")]
    pub(crate) fn number(&self, block: Block) -> u64 {
        self.weight(block).round() as u64
    }

    /// The usable bytes that a block stands for.
    pub(crate) fn usable_of(&self, block: Block) -> usize {
        (self.weight(block) * self.counted(block).usable() as f64).round() as usize
    }
}

/// Counts the bytes of a new block down to the next sample. Returns false and changes nothing if that is in the block.
#[inline(always)]
fn count_down(slot: &slot::ThreadSlot, requested: usize) -> bool {
    let (skip, bytes) = (slot.skip.get(), requested.max(1));
    if skip > bytes {
        slot.skip.set(skip - bytes);
    }
    skip > bytes
}
