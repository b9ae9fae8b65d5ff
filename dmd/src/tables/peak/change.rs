//! The change of one stack since a level of the sum.
//!
//! A change consists of two words, each with its level: a word of an earlier level is invalid. The low word contains a
//! small number of blocks and bytes, so that one exchange counts most events. The high word contains the remaining
//! amount, in multiples of 2^16 blocks and 2^28 bytes.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use dmd_format::tables::word::{REQUESTED_BITS, SLOP_BITS};

use super::{HeapLevel, LEVEL_SHIFT};
use crate::tables::pending::BlockAmount;

/// The change of one stack. All zero at first.
pub(super) struct StackChange {
    low: AtomicU64,
    high: AtomicU64,
}

/// The division of the 48 bits below the level. The word is blocks * 2^`bytes` + bytes, both signed. So adding two
/// words adds both parts.
#[derive(Clone, Copy)]
struct WordDivision {
    bytes: u32,
}

const LOW: WordDivision = WordDivision { bytes: 30 };
const HIGH: WordDivision = WordDivision { bytes: 24 };

const NUMBER: u64 = (1 << LEVEL_SHIFT) - 1;

/// A small amount of blocks and bytes, divided as in [`LOW`]. Each part is at most half of the largest number that fits
/// into the division. A low word always contains a small amount.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompactChange(u64);

/// The binary logarithm of the limit below which a number of blocks is small.
const FEW_BLOCKS: u32 = LOW.blocks() - 2;
const FEW_BYTES: u32 = LOW.bytes - 2;
const _: () = assert!(
    (1 << REQUESTED_BITS) + (1 << SLOP_BITS) <= 1_u64 << FEW_BYTES,
    "the usable bytes of a word are a small amount"
);

impl CompactChange {
    const BIAS: u64 = (1 << FEW_BLOCKS << LOW.bytes) + (1 << FEW_BYTES);
    /// A sum is small in both parts if these bits are 0 after [`BIAS`](Self::BIAS) is added. The sum of two small
    /// numbers is never so large that it wraps around to a small number.
    const MANY: u64 = 1 << (LEVEL_SHIFT - 1) | 1 << (LOW.bytes - 1);

    #[inline(always)]
    pub(super) fn pack(amount: BlockAmount) -> Option<Self> {
        let is_few = |number: i64, bits: u32| (-(1 << bits)..1 << bits).contains(&number);
        let both = is_few(amount.blocks, FEW_BLOCKS) && is_few(amount.bytes, FEW_BYTES);
        both.then(|| Self::pack_small(amount))
    }

    /// Packs an amount that is small. The caller guarantees that.
    #[inline(always)]
    pub(super) fn pack_small(amount: BlockAmount) -> Self {
        Self(LOW.number(amount))
    }
}

impl WordDivision {
    const fn blocks(self) -> u32 {
        LEVEL_SHIFT - self.bytes
    }

    #[inline(always)]
    fn number(self, amount: BlockAmount) -> u64 {
        (amount.blocks << self.bytes).wrapping_add(amount.bytes) as u64
    }

    fn packed(self, level: HeapLevel, amount: BlockAmount) -> u64 {
        level.0 << LEVEL_SHIFT | self.number(amount) & NUMBER
    }

    fn amount(self, word: u64) -> BlockAmount {
        let bytes = signed(word, self.bytes);
        let blocks = signed(word.wrapping_sub(bytes as u64) >> self.bytes, self.blocks());
        BlockAmount { blocks, bytes }
    }

    /// The amount in a word if the word belongs to this level; otherwise 0.
    fn since(self, word: u64, level: HeapLevel) -> BlockAmount {
        if HeapLevel(word >> LEVEL_SHIFT) == level { self.amount(word) } else { BlockAmount::default() }
    }

    /// Adds to a word. `split` divides the sum: the word keeps one part, and the function returns the other part. If
    /// the word has a later level, the events are part of the state at that level, and the function returns 0.
    fn add(
        self,
        word: &AtomicU64,
        level: HeapLevel,
        by: BlockAmount,
        split: impl Fn(BlockAmount) -> [BlockAmount; 2],
    ) -> BlockAmount {
        let mut old = word.load(Ordering::Relaxed);
        loop {
            if HeapLevel(old >> LEVEL_SHIFT) > level {
                return BlockAmount::default();
            }
            let [kept, rest] = split(self.since(old, level).plus(by));
            let new = self.packed(level, kept);
            match word.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return rest,
                Err(other) => old = other,
            }
        }
    }
}

/// The lowest bits of a number as a signed number: the highest of these bits is the sign.
#[inline(always)]
fn signed(number: u64, bits: u32) -> i64 {
    (number << (u64::BITS - bits)) as i64 >> (u64::BITS - bits)
}

/// Splits an amount into the part that the low word keeps, and the units for the high word. The kept part is centered
/// in the low word's range, so that the next events cause no carry.
fn split(amount: BlockAmount) -> [BlockAmount; 2] {
    if CompactChange::pack(amount).is_some() {
        return [amount, BlockAmount::default()];
    }
    let units = |number: i64, bits: u32| number.wrapping_add(1 << (bits - 1)) >> bits;
    let rest =
        BlockAmount { blocks: units(amount.blocks, FEW_BLOCKS), bytes: units(amount.bytes, FEW_BYTES) };
    [amount.plus(from_units(rest).negative()), rest]
}

/// The amount of a number of units of the high word.
fn from_units(units: BlockAmount) -> BlockAmount {
    BlockAmount { blocks: units.blocks << FEW_BLOCKS, bytes: units.bytes << FEW_BYTES }
}

/// The number of calls of [`StackChange::add`] that have started.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// The maximum number of tries of a reader while other threads carry from low words to high words. A thread may have
/// jumped out of a call, and then the call never ends.
const TRIES: usize = 32;

impl StackChange {
    pub(super) const fn new() -> Self {
        Self { low: AtomicU64::new(0), high: AtomicU64::new(0) }
    }

    /// Like [`add`](Self::add), for a small amount. Needs only one exchange if the result fits into the low word.
    #[inline(always)]
    pub(super) fn add_few(&self, level: HeapLevel, few: CompactChange) {
        let mut old = self.low.load(Ordering::Relaxed);
        loop {
            let of = HeapLevel(old >> LEVEL_SHIFT);
            if of > level {
                return;
            }
            let before = if of == level { old } else { 0 };
            let sum = before.wrapping_add(few.0) & NUMBER;
            if sum.wrapping_add(CompactChange::BIAS) & CompactChange::MANY != 0 {
                return self.add(level, LOW.amount(few.0));
            }
            let new = level.0 << LEVEL_SHIFT | sum;
            match self.low.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => old = other,
            }
        }
    }

    /// Adds a change since a level.
    #[cold]
    #[inline(never)]
    pub(super) fn add(&self, level: HeapLevel, amount: BlockAmount) {
        BEGUN.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
        let rest = LOW.add(&self.low, level, amount, split);
        if rest != BlockAmount::default() {
            HIGH.add(&self.high, level, rest, |units| [units, BlockAmount::default()]);
        }
        ENDED.fetch_add(1, Ordering::Release);
    }

    /// The change since a level.
    pub(super) fn since(&self, level: HeapLevel) -> BlockAmount {
        let mut amount = BlockAmount::default();
        for _ in 0..TRIES {
            let ended = ENDED.load(Ordering::Acquire);
            let units = HIGH.since(self.high.load(Ordering::Relaxed), level);
            amount = LOW.since(self.low.load(Ordering::Relaxed), level).plus(from_units(units));
            fence(Ordering::Acquire);
            // No other thread was between the two words of a change during the read.
            if BEGUN.load(Ordering::Relaxed) == ended {
                break;
            }
        }
        amount
    }

    /// Forgets the change.
    pub(super) fn clear(&self) {
        self.low.store(0, Ordering::Relaxed);
        self.high.store(0, Ordering::Relaxed);
    }
}
