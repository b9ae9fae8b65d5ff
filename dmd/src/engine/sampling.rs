//! Recording a sample by bytes.
//!
//! Hooks first call [`Engine::passes_over`] and [`Engine::has_no_record`], which cost a few instructions: most blocks
//! are not sampled, and have no record. The slot of a thread contains a countdown: the bytes that the thread still
//! allocates before its next sample. If the session number in the slot is old, the countdown belongs to an earlier
//! session, perhaps with another mean distance.

use core::sync::atomic::Ordering;

use super::{Engine, Phase, SAMPLED};
use crate::system::probes;
use crate::system::slot::{self, Inside, slot};
use crate::tables::block_table::TableBlock;
use crate::tables::pending::BlockAmount;
use crate::tables::stack::Caller;
use crate::tables::thread;
use dmd_format::sample;

/// The session number while the engine takes no sample. No slot has this number.
pub(super) const NO_SESSION: u32 = 1;

/// The maximum mean distance, in bytes. With a larger distance, a sample would contain no blocks.
pub(super) const LARGEST_MEAN: usize = 1 << 40;

impl Engine {
    /// The mean distance in bytes of a sample by bytes; 0 if the engine takes no such sample.
    pub(crate) fn mean(&self) -> usize {
        self.mean.load(Ordering::Relaxed)
    }

    /// Whether the engine samples by bytes and does not sample a new block of this size. The caller calls this once
    /// for each block, and does not record the block if the result is true.
    #[inline(always)]
    pub(crate) fn passes_over(&self, requested: usize) -> bool {
        let slot = slot();
        // Blocks of another hook, or of the engine itself, are not counted.
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

    /// Records a block if it is sampled. `caller` has the same meaning as in [`record`](Self::record).
    #[inline(never)]
    pub(super) fn record_sample(&self, address: usize, requested: usize, usable: usize, caller: Caller) {
        if self.phase() != Phase::Sampling || !slot::has_room() {
            return;
        }
        // The sample leaves out the few blocks of a handler that interrupts the engine.
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
        probes::block_began(address, requested, mean);
        self.record_inside(address, TableBlock { requested, slop, trace, sampled: true, marked: false });
    }

    /// Records a block again after the table forgot it. Returns false if there is no memory, or no room on the stack.
    pub(super) fn insert_again(&self, address: usize, block: TableBlock) -> bool {
        if !block.sampled || self.mean() == 0 {
            return self.table().insert(address, block);
        }
        Self::enter_with_room().is_some_and(|_inside| {
            SAMPLED.add(address);
            probes::block_began(address, block.requested, self.mean() as u64);
            self.insert_any(address, block)
        })
    }

    /// After the table forgot a block: removes the block from the filter, and gives the page of the table back if it
    /// has no other block.
    pub(super) fn forget_sample(&self, address: usize, block: TableBlock) {
        if self.uncount_sample(address, block)
            && let Some(_inside) = Self::enter_with_room()
        {
            self.table().forget_page(address);
        }
    }

    /// Removes a block from the filter. Returns false if the block is not from a sample by bytes.
    pub(super) fn uncount_sample(&self, address: usize, block: TableBlock) -> bool {
        let is_sample = block.sampled && self.mean() > 0;
        if is_sample {
            SAMPLED.remove(address);
            probes::block_ended(address);
        }
        is_sample
    }

    /// Adds a block to the table. Returns false if there is no memory for the block. If the block is sampled by bytes,
    /// the caller must be inside the engine's guard.
    #[inline(always)]
    pub(super) fn insert_any(&self, address: usize, block: TableBlock) -> bool {
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
    pub(super) fn counted_sample(&self, block: TableBlock) -> TableBlock {
        match self.mean() {
            0 => TableBlock { requested: self.below.load(Ordering::Relaxed), slop: 0, ..block },
            _ => TableBlock { sampled: false, ..block },
        }
    }

    /// The number of blocks of the same size that a block represents; 1 for blocks that are not from a sample by bytes.
    fn weight(&self, block: TableBlock) -> f64 {
        match self.mean() {
            mean if mean > 0 && block.sampled => sample::weight(block.requested as u64, mean as u64),
            _ => 1.0,
        }
    }

    /// The blocks and usable bytes that a block represents.
    #[inline]
    pub(crate) fn amount(&self, block: TableBlock) -> BlockAmount {
        if !block.sampled || self.mean() == 0 {
            return BlockAmount::from_block(self.counted(block));
        }
        let weight = self.weight(block);
        BlockAmount { blocks: weight.round() as i64, bytes: (weight * block.usable() as f64).round() as i64 }
    }

    /// The number of blocks of the same size that a block represents, rounded.
    #[cfg(feature = "analyze")]
    pub(crate) fn number(&self, block: TableBlock) -> u64 {
        self.weight(block).round() as u64
    }

    /// The usable bytes that a block represents.
    pub(crate) fn usable_of(&self, block: TableBlock) -> usize {
        (self.weight(block) * self.counted(block).usable() as f64).round() as usize
    }
}

/// Counts the bytes of a new block down to the next sample. Returns false, and changes nothing, if the next sample is
/// in this block.
#[inline(always)]
fn count_down(slot: &slot::ThreadSlot, requested: usize) -> bool {
    let (skip, bytes) = (slot.skip.get(), requested.max(1));
    if skip > bytes {
        slot.skip.set(skip - bytes);
    }
    skip > bytes
}
