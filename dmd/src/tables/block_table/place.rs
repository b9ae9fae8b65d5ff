//! The place in the table that stores a block.

use core::sync::atomic::AtomicU64;

use super::line::BlockLine;
use super::sparse::SparseSlot;

#[derive(Clone, Copy)]
pub(super) enum BlockPlace<'t> {
    /// A cell, and the first line of its chain.
    Cell(&'t AtomicU64, &'t BlockLine),
    Slot(&'t SparseSlot),
}

impl<'t> BlockPlace<'t> {
    pub(super) fn word(self) -> &'t AtomicU64 {
        match self {
            BlockPlace::Cell(cell, _) => cell,
            BlockPlace::Slot(slot) => &slot.word,
        }
    }

    /// The requested bytes and the slop of a wide block with this key. `None` if the block has ended in the meantime.
    pub(super) fn sizes(self, key: u64) -> Option<(u64, u64)> {
        match self {
            BlockPlace::Cell(_, line) => line.sizes(key),
            BlockPlace::Slot(slot) => Some(slot.sizes()),
        }
    }
}
