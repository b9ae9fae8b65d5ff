//! The peak of the heap: the highest sum of requested bytes of all live blocks, and what each stack had then.
//!
//! Nothing is copied at a peak. One word has the sum and the *level* of the highest sum so far; each stack has a
//! [`Change`] since that level was reached. A dump subtracts the changes from the live blocks. A change keeps the
//! level that it belongs to, so that a new level makes all changes void at once, at no cost. Levels are 8 KiB or
//! one part in 1,024 apart, so that there are few of them.
//!
//! Threads collect their events by stack (see [`pending`](super::pending)) and add many at once: the sum first, then,
//! unless the sum reached a new level, the changes of the stacks. Events that led to a new level are part of its
//! state, and leave no change.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::system::clock;
use crate::system::memory::{self, OwnLine};
use crate::tables::pending::Amount;
use crate::tables::trace_id::TraceId;
use crate::tables::trace_tree::TraceTree;

/// The level is in the upper 16 bits of a word, above a signed number.
const LEVEL_SHIFT: u32 = 48;

/// Logarithm of the bytes between the lowest levels, and of the levels in which a sum doubles.
const STEP_BITS: u32 = 13;
const OCTAVE_BITS: u32 = 10;

/// Bytes that all threads together may keep from the sum, and that part of it for a larger sum.
const PENDING: i64 = 16 << 10;
const PENDING_SHIFT: u32 = 9;

/// Entries whose memory a thread fetches at a time: all waits for it overlap, since most of it is not in a cache.
const BATCH: usize = 32;

const SEGMENT: usize = 1 << 14;
const SEGMENTS: usize = (TraceId::MAX as usize + 1) / SEGMENT;

/// The number of a level, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Level(u64);

/// What changed since a level was reached. All zero at first.
struct Change {
    bytes: AtomicU64,
    blocks: AtomicU64,
}

/// All zero at first.
pub(crate) struct Peak {
    /// Bytes of all blocks, with the level of their highest sum.
    sum: OwnLine<AtomicU64>,
    /// Bytes beyond [`PENDING`] that all threads together may keep pending.
    allowance: AtomicUsize,
    /// Nanoseconds of the system's monotonic clock: the start, and the last new level.
    started: AtomicU64,
    reached: AtomicU64,
    /// Changes of blocks without a stack.
    no_stack: OwnLine<Change>,
    segments: [AtomicPtr<[Change; SEGMENT]>; SEGMENTS],
    /// The number of changes, or more.
    made: AtomicU32,
    mapped: AtomicUsize,
    lost: AtomicU64,
}

impl Level {
    /// The level of a sum.
    #[inline]
    fn of(bytes: i64) -> Self {
        let bytes = bytes.max(0) as u64;
        let octave = u64::BITS - (bytes >> (STEP_BITS + OCTAVE_BITS)).leading_zeros();
        let steps = bytes >> (STEP_BITS + octave.saturating_sub(1));
        Self((u64::from(octave.saturating_sub(1)) << OCTAVE_BITS) + steps)
    }

    fn octave(self) -> u64 {
        (self.0 >> OCTAVE_BITS).saturating_sub(1)
    }

    /// Bytes up to the next level.
    fn step(self) -> i64 {
        1 << (u64::from(STEP_BITS) + self.octave())
    }

    /// The smallest sum of this level.
    fn floor(self) -> i64 {
        ((self.0 - (self.octave() << OCTAVE_BITS)) << (u64::from(STEP_BITS) + self.octave())) as i64
    }

    /// The smallest sum of this level, in bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.floor() as u64
    }

    /// Bytes that all threads together may keep pending.
    fn pending(self) -> i64 {
        (self.floor() >> PENDING_SHIFT).max(PENDING)
    }
}

fn packed(level: Level, number: i64) -> u64 {
    level.0 << LEVEL_SHIFT | (number as u64 & ((1 << LEVEL_SHIFT) - 1))
}

fn unpacked(word: u64) -> (Level, i64) {
    (Level(word >> LEVEL_SHIFT), (word << (u64::BITS - LEVEL_SHIFT)) as i64 >> (u64::BITS - LEVEL_SHIFT))
}

impl Change {
    const fn new() -> Self {
        Self { bytes: AtomicU64::new(0), blocks: AtomicU64::new(0) }
    }

    #[inline]
    fn add(&self, level: Level, amount: Amount) {
        for (word, by) in [(&self.bytes, amount.bytes), (&self.blocks, amount.blocks)] {
            if by != 0 {
                add(word, level, by);
            }
        }
    }

    fn since(&self, level: Level) -> Amount {
        let number = |word: &AtomicU64| {
            let (of, number) = unpacked(word.load(Ordering::Relaxed));
            if of == level { number } else { 0 }
        };
        Amount { blocks: number(&self.blocks), bytes: number(&self.bytes) }
    }

    fn clear(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.blocks.store(0, Ordering::Relaxed);
    }
}

/// Adds to a number since a level. If the number is of an earlier level, it is void; if it is of a later one, the
/// events are part of that level's state.
#[inline]
fn add(word: &AtomicU64, level: Level, by: i64) {
    let mut old = word.load(Ordering::Relaxed);
    loop {
        let (of, before) = unpacked(old);
        if of > level {
            return;
        }
        let before = if of == level { before } else { 0 };
        let new = packed(level, before.wrapping_add(by));
        match word.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => old = other,
        }
    }
}

impl Peak {
    pub(crate) const fn new() -> Self {
        Self {
            sum: OwnLine(AtomicU64::new(0)),
            allowance: AtomicUsize::new(0),
            started: AtomicU64::new(0),
            reached: AtomicU64::new(0),
            no_stack: OwnLine(Change::new()),
            segments: [const { AtomicPtr::new(null_mut()) }; SEGMENTS],
            made: AtomicU32::new(0),
            mapped: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Starts the clock.
    pub(crate) fn start(&self) {
        self.started.store(clock::nanoseconds(), Ordering::Relaxed);
    }

    /// Bytes mapped for the changes.
    pub(crate) fn mapped(&self) -> usize {
        self.mapped.load(Ordering::Relaxed)
    }

    /// Changes that are missing because memory was short.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Bytes that all threads together may keep pending, each an equal part.
    #[inline(always)]
    pub(crate) fn allowance(&self) -> usize {
        PENDING as usize + self.allowance.load(Ordering::Relaxed)
    }

    /// Adds what began and ended of several stacks, and `bytes`, the sum of it. They are one step: a peak has all of
    /// them, or none.
    pub(crate) fn add(&self, tree: &TraceTree, bytes: i64, entries: impl Iterator<Item = (TraceId, Amount)>) {
        let Some(level) = self.add_to_sum(bytes) else { return };
        let mut changed = entries.filter(|(_, amount)| *amount != Amount::default());
        let mut batch = [(TraceId::NONE, Amount::default()); BATCH];
        loop {
            let mut length = 0;
            for (place, entry) in batch.iter_mut().zip(&mut changed) {
                *place = entry;
                length += 1;
                tree.prefetch(entry.0);
            }
            self.add_batch(tree, level, &batch[..length]);
            if length < BATCH {
                return;
            }
        }
    }

    /// Adds to the changes of stacks whose nodes are in the caches, or on their way.
    fn add_batch(&self, tree: &TraceTree, level: Level, batch: &[(TraceId, Amount)]) {
        let mut changes = [None; BATCH];
        for (place, (trace, _)) in changes.iter_mut().zip(batch) {
            *place = self.change(tree, *trace);
            if let Some(change) = place {
                memory::prefetch(*change);
            }
        }
        for (change, (_, amount)) in changes.into_iter().zip(batch) {
            match change {
                Some(change) => change.add(level, *amount),
                None => _ = self.lost.fetch_add(1, Ordering::Relaxed),
            }
        }
    }

    /// Returns the level since which the events are a change; `None` if they led to a new level.
    fn add_to_sum(&self, by: i64) -> Option<Level> {
        let mut old = self.sum.0.load(Ordering::Relaxed);
        loop {
            let (highest, before) = unpacked(old);
            let sum = before.wrapping_add(by);
            let level = Level::of(sum);
            let new = packed(level.max(highest), sum);
            match self.sum.0.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) if level > highest => {
                    self.reached.fetch_max(clock::nanoseconds(), Ordering::Relaxed);
                    self.allowance.store((level.pending() - PENDING) as usize, Ordering::Relaxed);
                    return None;
                }
                Ok(_) => return Some(highest),
                Err(other) => old = other,
            }
        }
    }

    /// The level of the highest sum.
    pub(crate) fn level(&self) -> Level {
        unpacked(self.sum.0.load(Ordering::Relaxed)).0
    }

    /// The changes of a stack, made if it has none; `None` if memory is short.
    #[inline]
    fn change(&self, tree: &TraceTree, trace: TraceId) -> Option<&Change> {
        if trace == TraceId::NONE {
            return Some(&self.no_stack.0);
        }
        match tree.change(trace) {
            0 => self.numbered(tree.set_change(trace, self.make()?)?),
            number => self.numbered(number),
        }
    }

    #[inline]
    fn numbered(&self, number: u32) -> Option<&Change> {
        let segment = self.segments.get(number as usize / SEGMENT)?.load(Ordering::Acquire);
        // SAFETY: null, or a segment of `make`, and nobody unmaps one.
        let segment = unsafe { segment.as_ref() }?;
        Some(&segment[number as usize % SEGMENT])
    }

    /// The number of a fresh change.
    #[cold]
    fn make(&self) -> Option<u32> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(segment) = self.segments.get(number as usize / SEGMENT) else {
            self.made.store((SEGMENT * SEGMENTS) as u32 - 1, Ordering::Relaxed);
            return None;
        };
        if !memory::map_once(segment, &self.mapped) {
            return None;
        }
        Some(number)
    }

    /// Calls `each` for every stack that changed since a level.
    pub(crate) fn for_each_since(
        &self,
        level: Level,
        tree: &TraceTree,
        mut each: impl FnMut(TraceId, Amount),
    ) {
        each(TraceId::NONE, self.no_stack.0.since(level));
        tree.for_each_change(|trace, number| {
            if let Some(change) = self.numbered(number) {
                each(trace, change.since(level));
            }
        });
    }

    /// Bytes by which the highest sum may differ from that of the level's state, with at most this many threads at
    /// a time. When there were n threads, each kept at most an nth part of the allowance.
    pub(crate) fn within(&self, level: Level, threads: usize) -> u64 {
        let pending: i64 = (1..=threads as i64).map(|nth| level.pending() / nth).sum();
        (level.step() + pending) as u64
    }

    /// Seconds from the start to the last new level, and to now.
    pub(crate) fn seconds(&self) -> (f64, f64) {
        let started = self.started.load(Ordering::Relaxed);
        let since = |time: u64| time.saturating_sub(started) as f64 / 1e9;
        (since(self.reached.load(Ordering::Relaxed)), since(clock::nanoseconds()))
    }

    /// For tests: forgets all. No other thread may allocate meanwhile.
    pub(crate) fn clear(&self, tree: &TraceTree) {
        self.sum.0.store(0, Ordering::Relaxed);
        self.reached.store(0, Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
        self.no_stack.0.clear();
        tree.for_each_change(|_, number| {
            if let Some(change) = self.numbered(number) {
                change.clear();
            }
        });
        self.allowance.store(0, Ordering::Relaxed);
        self.start();
    }
}

#[cfg(test)]
mod tests;
