//! A block packed into one word.

use dmd_format::tables::word as format;
use dmd_format::tables::word::{REQUESTED_BITS, REQUESTED_SHIFT, SLOP_BITS, STACK_SHIFT};

use super::TableBlock;
use crate::tables::trace_id::TraceId;

pub(super) use format::{
    FREED, KEY, KEY_BITS, KEY_SHIFT, LIVE, MARKED, SAMPLED, SIZE, SIZE_SHIFT, SLOP, SLOP_SHIFT, TAG, WIDE,
    fingerprint,
};

const _: () = assert!(format::STACK_BITS == TraceId::BITS);

/// A block whose sizes fit into a word, and that represents only itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockWord(pub(super) u64);

impl BlockWord {
    /// Packs a block. Returns `None` if the sizes do not fit, or if the block represents other blocks.
    #[inline(always)]
    pub(crate) fn pack(block: TableBlock) -> Option<Self> {
        let TableBlock { requested, slop, trace, sampled, marked: _ } = block;
        if sampled || requested >= 1 << REQUESTED_BITS || slop >= 1 << SLOP_BITS {
            return None;
        }
        Some(Self(packed_sizes(requested, slop) | LIVE | u64::from(trace.0) << STACK_SHIFT))
    }

    /// The bits of the word. [`SPARE_BITS`](Self::SPARE_BITS) are 0.
    #[inline(always)]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits & !(Self::SPARE_BITS[0] | Self::SPARE_BITS[1]))
    }

    /// Bits that are 0 in each `BlockWord`, so that other code can use them as flags.
    pub(crate) const SPARE_BITS: [u64; 2] = [WIDE, SAMPLED];

    #[inline(always)]
    pub(crate) fn requested(self) -> usize {
        (self.0 >> REQUESTED_SHIFT & ((1 << REQUESTED_BITS) - 1)) as usize
    }

    #[inline(always)]
    pub(crate) fn trace(self) -> TraceId {
        TraceId((self.0 >> STACK_SHIFT & u64::from(TraceId::MAX)) as u32)
    }

    #[inline(always)]
    fn slop(self) -> usize {
        (self.0 >> SLOP_SHIFT & ((1 << SLOP_BITS) - 1)) as usize
    }

    #[inline(always)]
    pub(crate) fn usable(self) -> usize {
        self.requested() + self.slop()
    }

    #[inline(always)]
    pub(crate) fn block(self) -> TableBlock {
        TableBlock {
            requested: self.requested(),
            slop: self.slop(),
            trace: self.trace(),
            sampled: self.0 & SAMPLED != 0,
            marked: self.0 & MARKED != 0,
        }
    }
}

/// The word of a live block, with key 0.
#[inline(always)]
pub(super) fn packed(block: TableBlock) -> u64 {
    let mut value = LIVE | u64::from(block.trace.0) << STACK_SHIFT;
    if block.sampled {
        value |= SAMPLED;
    }
    if block.requested < 1 << REQUESTED_BITS && block.slop < 1 << SLOP_BITS {
        value | packed_sizes(block.requested, block.slop)
    } else {
        value | WIDE | fingerprint(block.requested as u64, block.slop as u64) << SLOP_SHIFT
    }
}

/// Packs sizes that fit into a word.
#[inline(always)]
fn packed_sizes(requested: usize, slop: usize) -> u64 {
    (requested as u64) << REQUESTED_SHIFT | (slop as u64) << SLOP_SHIFT
}

/// Whether a word belongs to a live block with this key.
#[inline(always)]
pub(super) fn is_live(word: u64, key: u64) -> bool {
    word & (TAG | KEY) == LIVE | key
}
