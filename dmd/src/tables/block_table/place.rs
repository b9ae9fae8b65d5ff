//! The place where a block is recorded.

use core::sync::atomic::AtomicU64;

use super::line::Line;
use super::sparse::Slot;

#[derive(Clone, Copy)]
pub(super) enum Place<'t> {
    /// A cell, and the first line of its chain.
    Cell(&'t AtomicU64, &'t Line),
    Slot(&'t Slot),
}

impl<'t> Place<'t> {
    pub(super) fn word(self) -> &'t AtomicU64 {
        match self {
            Place::Cell(cell, _) => cell,
            Place::Slot(slot) => &slot.word,
        }
    }

    /// Requested bytes and slop of a wide block with this key. `None` if it ended meanwhile.
    pub(super) fn sizes(self, key: u64) -> Option<(u64, u64)> {
        match self {
            Place::Cell(_, line) => line.sizes(key),
            Place::Slot(slot) => Some(slot.sizes()),
        }
    }
}
