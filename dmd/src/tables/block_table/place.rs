//! The place where a block is recorded.

use core::sync::atomic::{AtomicU64, Ordering};

use super::sparse::Slot;

#[derive(Clone, Copy)]
pub(super) enum Place<'t> {
    Word(&'t AtomicU64),
    Slot(&'t Slot),
}

impl<'t> Place<'t> {
    pub(super) fn word(self) -> &'t AtomicU64 {
        match self {
            Place::Word(word) => word,
            Place::Slot(slot) => &slot.word,
        }
    }

    /// The slot of the same address, unless the word takes precedence.
    pub(super) fn or(self, slot: &'t Slot) -> Self {
        if self.word().load(Ordering::Relaxed) == 0 { Place::Slot(slot) } else { self }
    }
}
