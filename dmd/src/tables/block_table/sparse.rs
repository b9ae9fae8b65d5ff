//! Large blocks in parts of the heap where no small block was recorded. Each block has a slot in a short chain of
//! chunks.
//!
//! A slot belongs to the same address forever. So a thread that has found the slot may use it, no matter what other
//! threads do. A part of the heap has twice as many slots as large blocks fit into it. If no slot is free, a block gets
//! a cell.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU16, AtomicU64, Ordering};

use dmd_format::tables::SLOTS;

use super::TableBlock;
use crate::system::memory::ZeroedPool;

const MOST_CHUNKS: usize = 4;

/// Slots and their keys. All zero at first.
#[repr(C)]
pub(super) struct SparseChunk {
    /// For each slot, the place of its address in this part of the heap, plus one; 0 for a free slot.
    keys: [AtomicU16; SLOTS],
    next: AtomicPtr<SparseChunk>,
    slots: [SparseSlot; SLOTS],
}

#[repr(C)]
pub(super) struct SparseSlot {
    /// A word in the format of the table.
    pub(super) word: AtomicU64,
    requested: AtomicU64,
    slop: AtomicU64,
}

impl SparseSlot {
    pub(super) fn store(&self, word: u64, block: TableBlock) {
        self.requested.store(block.requested as u64, Ordering::Relaxed);
        self.slop.store(block.slop as u64, Ordering::Relaxed);
        self.word.store(word, Ordering::Release);
    }

    /// The requested bytes, and the slop.
    pub(super) fn sizes(&self) -> (u64, u64) {
        (self.requested.load(Ordering::Acquire), self.slop.load(Ordering::Acquire))
    }
}

impl SparseChunk {
    fn next(&self) -> Option<&SparseChunk> {
        // SAFETY: the pointer is null or points to a chunk of `make`, and the table never unmaps one.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    fn chain(&self) -> impl Iterator<Item = &SparseChunk> {
        core::iter::successors(Some(self), |chunk| chunk.next())
    }

    /// The slot of a place; `None` if the place has no slot.
    pub(super) fn find(&self, index: usize) -> Option<&SparseSlot> {
        let slots = self.chain().flat_map(|chunk| chunk.keys.iter().zip(&chunk.slots));
        slots
            .map(|(key, slot)| (key.load(Ordering::Acquire), slot))
            .find(|(key, _)| *key == key_of(index))
            .map(|(_, slot)| slot)
    }
}

fn key_of(index: usize) -> u16 {
    index as u16 + 1
}

/// The slot of a place. If the place has no slot yet, takes the first free slot. Returns `None` if there is no free
/// slot, or if memory is short.
pub(super) fn make<'t>(
    first: &'t AtomicPtr<SparseChunk>,
    index: usize,
    pool: &ZeroedPool<SparseChunk>,
) -> Option<&'t SparseSlot> {
    let mut place = first;
    for _ in 0..MOST_CHUNKS {
        if place.load(Ordering::Acquire).is_null() {
            // If another thread was faster, its chunk is used, and this chunk is never touched.
            let _ = place.compare_exchange(null_mut(), pool.take(), Ordering::AcqRel, Ordering::Acquire);
        }
        // SAFETY: the pointer is null or points to a chunk of the pool, which never unmaps one.
        let chunk = unsafe { place.load(Ordering::Acquire).as_ref() }?;
        for (key, slot) in chunk.keys.iter().zip(&chunk.slots) {
            let owner = key.compare_exchange(0, key_of(index), Ordering::AcqRel, Ordering::Acquire);
            if owner.is_ok() || owner == Err(key_of(index)) {
                return Some(slot);
            }
        }
        place = &chunk.next;
    }
    None
}

/// All slots of a chain with their places, in the order of the places.
pub(super) fn in_order(first: Option<&SparseChunk>) -> [Option<(usize, &SparseSlot)>; SLOTS * MOST_CHUNKS] {
    let mut all = [None; SLOTS * MOST_CHUNKS];
    let slots =
        first.into_iter().flat_map(SparseChunk::chain).flat_map(|chunk| chunk.keys.iter().zip(&chunk.slots));
    let made = slots
        .filter_map(|(key, slot)| Some((usize::from(key.load(Ordering::Acquire)).checked_sub(1)?, slot)));
    for (place, slot) in all.iter_mut().zip(made) {
        *place = Some(slot);
    }
    all.sort_unstable_by_key(|slot| slot.map_or(usize::MAX, |(index, _)| index));
    all
}
