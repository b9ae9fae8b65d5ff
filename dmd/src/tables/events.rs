//! What happens to a block, as observers get it.

use crate::system::clock;
use crate::tables::block_table::Block;
use crate::tables::statistics::End;

/// What happened to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Began,
    Ended(End),
    /// The allocator did not move the block, whose end by a move came before.
    CameBack,
}

/// What happened to a block, when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// A reading of [`clock::ticks`].
    pub(crate) tick: u64,
    pub(crate) address: usize,
    pub(crate) happened: Happened,
    pub(crate) block: Block,
}

impl Event {
    /// An event that happens now.
    pub(crate) fn now(address: usize, happened: Happened, block: Block) -> Self {
        Self { tick: clock::ticks(), address, happened, block }
    }
}
