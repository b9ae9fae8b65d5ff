//! Events of blocks, in the form in which observers get them.

use crate::system::clock;
use crate::tables::block_table::TableBlock;
use crate::tables::statistics::BlockEnd;

/// The kind of an event of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Began,
    Ended(BlockEnd),
    /// The block is live again: its end by a move was recorded, but the allocator did not move it.
    CameBack,
}

/// An event of a block, with its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableEvent {
    /// A reading of [`clock::ticks`].
    pub(crate) tick: u64,
    pub(crate) address: usize,
    pub(crate) happened: EventKind,
    pub(crate) block: TableBlock,
}

impl TableEvent {
    /// An event that happens now.
    pub(crate) fn now(address: usize, happened: EventKind, block: TableBlock) -> Self {
        Self { tick: clock::ticks(), address, happened, block }
    }
}
