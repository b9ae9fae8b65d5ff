//! What changed of one stack since a level of the sum.
//!
//! A change is two words, each with the level that it belongs to: a word of an earlier level is void. The low word has
//! blocks and bytes as far as they fit, so that one exchange counts most events. The high word has the rest, in units of
//! what a part of the low word can tell apart.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{LEVEL_SHIFT, Level};
use crate::tables::pending::Amount;

/// All zero at first.
pub(super) struct Change {
    low: AtomicU64,
    high: AtomicU64,
}

/// How a word is divided below its level: it has the sum of signed bytes, in this many bits, and of signed blocks as
/// multiples of what comes after these bits. So words are added as numbers.
#[derive(Clone, Copy)]
struct Division {
    bytes: u32,
}

const LOW: Division = Division { bytes: 30 };
const HIGH: Division = Division { bytes: 24 };

const NUMBER: u64 = (1 << LEVEL_SHIFT) - 1;

/// Blocks and bytes of which each is at most a quarter of what a low word can have: [`of_few`](Self::of_few) is as `LOW`
/// divides a word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Few(u64);

impl Few {
    const BLOCKS: i64 = 1 << (LOW.blocks() - 2);
    const BYTES: i64 = 1 << (LOW.bytes - 2);
    /// If this is added to a number, each part of which is a few, these bits of the sum are 0. The parts of the sum of a
    /// low word and a few cannot be so different that they are again.
    const BIAS: u64 = ((Self::BLOCKS as u64) << LOW.bytes) + Self::BYTES as u64;
    const MANY: u64 = 1 << (LEVEL_SHIFT - 1) | 1 << (LOW.bytes - 1);

    #[inline(always)]
    pub(super) fn of(amount: Amount) -> Option<Self> {
        let is_few = |number: i64, few: i64| (-few..few).contains(&number);
        let both = is_few(amount.blocks, Self::BLOCKS) && is_few(amount.bytes, Self::BYTES);
        both.then(|| Self::of_few(amount))
    }

    #[inline(always)]
    pub(super) fn of_few(amount: Amount) -> Self {
        Self(((amount.blocks << LOW.bytes) + amount.bytes) as u64)
    }
}

impl Division {
    const fn blocks(self) -> u32 {
        LEVEL_SHIFT - self.bytes
    }

    fn packed(self, level: Level, amount: Amount) -> u64 {
        let number = (amount.blocks << self.bytes).wrapping_add(amount.bytes);
        level.0 << LEVEL_SHIFT | number as u64 & NUMBER
    }

    fn unpacked(self, word: u64) -> (Level, Amount) {
        let bytes = signed(word, self.bytes);
        let blocks = signed(word.wrapping_sub(bytes as u64) >> self.bytes, self.blocks());
        (Level(word >> LEVEL_SHIFT), Amount { blocks, bytes })
    }

    /// What fits a word, and the rest, in units of what the parts can tell apart.
    fn split(self, amount: Amount) -> (Amount, Amount) {
        let (blocks, bytes) =
            (signed(amount.blocks as u64, self.blocks()), signed(amount.bytes as u64, self.bytes));
        let rest = Amount {
            blocks: amount.blocks.wrapping_sub(blocks) >> self.blocks(),
            bytes: amount.bytes.wrapping_sub(bytes) >> self.bytes,
        };
        (Amount { blocks, bytes }, rest)
    }

    /// Adds to a word, and returns the rest that does not fit. If the word is of an earlier level, it is void; if it is of
    /// a later one, the events are part of that level's state.
    fn add(self, word: &AtomicU64, level: Level, by: Amount) -> Amount {
        let mut old = word.load(Ordering::Relaxed);
        loop {
            let (of, before) = self.unpacked(old);
            if of > level {
                return Amount::default();
            }
            let (kept, rest) = self.split(if of == level { before.plus(by) } else { by });
            let new = self.packed(level, kept);
            match word.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return rest,
                Err(other) => old = other,
            }
        }
    }
}

/// The lowest bits of a number, of which the highest is the sign.
#[inline(always)]
fn signed(number: u64, bits: u32) -> i64 {
    (number << (u64::BITS - bits)) as i64 >> (u64::BITS - bits)
}

impl Change {
    pub(super) const fn new() -> Self {
        Self { low: AtomicU64::new(0), high: AtomicU64::new(0) }
    }

    /// [`add`](Self::add) for a few, by one exchange unless the word then has more than a few.
    #[inline(always)]
    pub(super) fn add_few(&self, level: Level, few: Few) {
        let mut old = self.low.load(Ordering::Relaxed);
        loop {
            let of = Level(old >> LEVEL_SHIFT);
            if of > level {
                return;
            }
            let before = if of == level { old } else { 0 };
            let sum = before.wrapping_add(few.0) & NUMBER;
            if sum.wrapping_add(Few::BIAS) & Few::MANY != 0 {
                return self.add(level, LOW.unpacked(few.0).1);
            }
            let new = level.0 << LEVEL_SHIFT | sum;
            match self.low.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => old = other,
            }
        }
    }

    /// Adds to a change since a level.
    #[cold]
    #[inline(never)]
    pub(super) fn add(&self, level: Level, amount: Amount) {
        let rest = LOW.add(&self.low, level, amount);
        if rest != Amount::default() {
            HIGH.add(&self.high, level, rest);
        }
    }

    pub(super) fn since(&self, level: Level) -> Amount {
        let number = |division: Division, word: &AtomicU64| {
            let (of, number) = division.unpacked(word.load(Ordering::Relaxed));
            if of == level { number } else { Amount::default() }
        };
        let Amount { blocks, bytes } = number(HIGH, &self.high);
        let carried =
            Amount { blocks: blocks.wrapping_shl(LOW.blocks()), bytes: bytes.wrapping_shl(LOW.bytes) };
        number(LOW, &self.low).plus(carried)
    }

    /// For tests: forgets all.
    pub(super) fn clear(&self) {
        self.low.store(0, Ordering::Relaxed);
        self.high.store(0, Ordering::Relaxed);
    }
}
