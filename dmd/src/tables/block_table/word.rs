//! A block as one word.

use super::Block;
use crate::tables::trace_id::TraceId;

// Bits of a word: tag 2, wide 1, sampled 1, marked 1, key 5, trace 25, slop 11, requested 18.
pub(super) const TAG: u64 = 0b11;
pub(super) const LIVE: u64 = 0b01;
pub(super) const FREED: u64 = 0b10;
/// Not a block, but one of the two sizes of a wide block.
pub(super) const SIZE: u64 = 0b11;
pub(super) const WIDE: u64 = 1 << 2;
pub(super) const SAMPLED: u64 = 1 << 3;
pub(super) const MARKED: u64 = 1 << 4;
pub(super) const KEY_SHIFT: u32 = 5;
pub(super) const KEY_BITS: u32 = 5;
/// The place in its stretch of heap where the block starts.
pub(super) const KEY: u64 = ((1 << KEY_BITS) - 1) << KEY_SHIFT;
const TRACE_SHIFT: u32 = KEY_SHIFT + KEY_BITS;
pub(super) const SLOP_SHIFT: u32 = TRACE_SHIFT + TraceId::BITS;
const SLOP_BITS: u32 = 11;
const REQUESTED_SHIFT: u32 = SLOP_SHIFT + SLOP_BITS;
const REQUESTED_BITS: u32 = 18;
const _: () = assert!(REQUESTED_SHIFT + REQUESTED_BITS == 64);

/// A block whose sizes fit a word, and that stands for itself alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(super) u64);

impl Word {
    /// `None` if the sizes do not fit, or if the block stands for others.
    #[inline(always)]
    pub(crate) fn of(block: Block) -> Option<Self> {
        let word = packed(block);
        (word & (WIDE | SAMPLED) == 0).then_some(Self(word))
    }

    /// The bits, of which [`SPARE_BITS`](Self::SPARE_BITS) are 0.
    #[inline(always)]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits & !(Self::SPARE_BITS[0] | Self::SPARE_BITS[1]))
    }

    /// Bits that are always 0.
    pub(crate) const SPARE_BITS: [u64; 2] = [WIDE, SAMPLED];

    #[inline(always)]
    pub(crate) fn requested(self) -> usize {
        (self.0 >> REQUESTED_SHIFT & ((1 << REQUESTED_BITS) - 1)) as usize
    }

    #[inline(always)]
    pub(crate) fn trace(self) -> TraceId {
        TraceId((self.0 >> TRACE_SHIFT & u64::from(TraceId::MAX)) as u32)
    }

    #[inline(always)]
    fn slop(self) -> usize {
        (self.0 >> SLOP_SHIFT & ((1 << SLOP_BITS) - 1)) as usize
    }

    #[inline(always)]
    pub(super) fn usable(self) -> usize {
        self.requested() + self.slop()
    }

    #[inline(always)]
    pub(crate) fn block(self) -> Block {
        Block {
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
pub(super) fn packed(block: Block) -> u64 {
    let mut value = LIVE | u64::from(block.trace.0) << TRACE_SHIFT;
    if block.sampled {
        value |= SAMPLED;
    }
    if block.requested < 1 << REQUESTED_BITS && block.slop < 1 << SLOP_BITS {
        value | (block.requested as u64) << REQUESTED_SHIFT | (block.slop as u64) << SLOP_SHIFT
    } else {
        value | WIDE | fingerprint(block.requested as u64, block.slop as u64) << SLOP_SHIFT
    }
}

/// Tells whether sizes belong to the word of a wide block. It fills the bits into which the sizes do not fit.
pub(super) fn fingerprint(requested: u64, slop: u64) -> u64 {
    let mixed = requested.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ slop.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    mixed >> (64 - SLOP_BITS - REQUESTED_BITS)
}

/// Whether a word is that of a live block with this key.
#[inline(always)]
pub(super) fn is_live(word: u64, key: u64) -> bool {
    word & (TAG | KEY) == LIVE | key
}
