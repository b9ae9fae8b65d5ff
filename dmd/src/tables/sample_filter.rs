//! A filter for addresses that may be the start of a sampled block. It fits into the first-level cache, so that the
//! end of a block that was not sampled costs one read.
//!
//! The filter counts the sampled blocks of each class of addresses. An allocator often gives neighboring blocks to
//! code that runs at the same time, so neighboring addresses have neighboring counters. A counter that is full stays
//! full: for its addresses, the engine always searches the table.

use core::sync::atomic::{AtomicU32, Ordering};

const COUNTER_BITS: u32 = 4;
const FULL: u32 = (1 << COUNTER_BITS) - 1;
const IN_WORD: u32 = u32::BITS / COUNTER_BITS;
const CLASS_BITS: u32 = 14;
const WORDS: usize = 1 << CLASS_BITS >> IN_WORD.ilog2();
const GRAIN_BITS: u32 = 4;

/// The counters: 8 KiB, all zero at first.
#[repr(align(64))]
pub(crate) struct SampleFilter([AtomicU32; WORDS]);

impl SampleFilter {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU32::new(0) }; WORDS])
    }

    /// Returns false if no sampled block starts at this address.
    #[inline(always)]
    pub(crate) fn may_have(&self, address: usize) -> bool {
        let (word, shift) = self.counter(address);
        word.load(Ordering::Relaxed) >> shift & FULL != 0
    }

    /// Adds a block. Call this before the table records the block.
    pub(crate) fn add(&self, address: usize) {
        self.change(address, |count| if count < FULL { count + 1 } else { count });
    }

    /// Removes a block that was added. Call this after the table has forgotten the block.
    pub(crate) fn remove(&self, address: usize) {
        self.change(address, |count| if count == FULL { count } else { count.saturating_sub(1) });
    }

    fn change(&self, address: usize, to: impl Fn(u32) -> u32) {
        let (word, shift) = self.counter(address);
        let changed = |old: u32| old & !(FULL << shift) | to(old >> shift & FULL) << shift;
        let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(changed(old)));
    }

    /// Forgets all blocks.
    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// The word of an address, and the position of its counter in the word, in bits.
    #[inline(always)]
    fn counter(&self, address: usize) -> (&AtomicU32, u32) {
        let grain = address >> GRAIN_BITS;
        let class = (grain ^ grain >> CLASS_BITS) & ((1 << CLASS_BITS) - 1);
        (&self.0[class / IN_WORD as usize], class as u32 % IN_WORD * COUNTER_BITS)
    }
}
