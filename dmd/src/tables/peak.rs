//! The peak of the heap: the highest sum of usable bytes of all live blocks, and the amount of each stack at that
//! moment.
//!
//! No data is copied at a peak. One word contains the sum and the *level* of the highest sum so far. Each stack has a
//! [`StackChange`] since that level was reached. A dump subtracts the changes from the live blocks. A change contains
//! its level, so that a new level makes all changes invalid at once, at no cost. Levels are 8 KiB or one part in 1,024
//! apart, so that there are few of them.
//!
//! Threads collect their events by stack (see [`pending`](super::pending)) and add many events at once. They add to
//! the sum first. Then they add to the changes of the stacks, unless the sum has reached a new level. Events that led
//! to a new level are part of the state at that level, so they are not a change.

mod change;
mod fall;

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::system::clock;
use crate::system::memory::{self, OwnLine};
use crate::tables::pending::{BlockAmount, PendingEvents};
use crate::tables::trace_id::TraceId;
use crate::tables::trace_tree::{StackNode, TraceTree};
use change::{CompactChange, StackChange};
pub(crate) use fall::PeakFall;

/// The level is in the upper 16 bits of a word, above a signed number.
const LEVEL_SHIFT: u32 = 48;

/// Logarithm of the number of bytes between the lowest levels.
const STEP_BITS: u32 = 13;
const OCTAVE_BITS: u32 = 10;

/// The lower bound of the allowance: all threads together may always keep this many bytes out of the sum.
const PENDING: i64 = 16 << 10;
const PENDING_SHIFT: u32 = 9;

/// The number of entries whose memory a thread prefetches at a time. The waits for memory overlap, since most entries
/// are not in a cache.
const BATCH: usize = 32;

const SEGMENT: usize = 1 << 14;
const SEGMENTS: usize = (TraceId::MAX as usize + 1) / SEGMENT;

/// The number of a level, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeapLevel(u64);

/// The state of the peak. All zero at first.
pub(crate) struct Peak {
    /// The usable bytes of all blocks, with the level of the highest sum.
    sum: OwnLine<AtomicU64>,
    /// The bytes beyond [`PENDING`] that all threads together may keep pending.
    allowance: AtomicUsize,
    /// The time of the start, in nanoseconds of the system's monotonic clock.
    started: AtomicU64,
    reached: AtomicU64,
    /// The changes of blocks without a stack.
    no_stack: OwnLine<StackChange>,
    segments: [AtomicPtr<[StackChange; SEGMENT]>; SEGMENTS],
    /// The number of changes, or a larger number.
    made: AtomicU32,
    mapped: AtomicUsize,
    lost: AtomicU64,
    pub(crate) fall: PeakFall,
}

impl HeapLevel {
    /// The level of a sum.
    #[inline]
    fn from_bytes(bytes: i64) -> Self {
        let bytes = bytes.max(0) as u64;
        let octave = u64::BITS - (bytes >> (STEP_BITS + OCTAVE_BITS)).leading_zeros();
        let steps = bytes >> (STEP_BITS + octave.saturating_sub(1));
        Self((u64::from(octave.saturating_sub(1)) << OCTAVE_BITS) + steps)
    }

    fn octave(self) -> u64 {
        (self.0 >> OCTAVE_BITS).saturating_sub(1)
    }

    /// The number of bytes between this level and the next level.
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

    /// The number of bytes that all threads together may keep pending.
    fn pending(self) -> i64 {
        (self.floor() >> PENDING_SHIFT).max(PENDING)
    }
}

fn packed(level: HeapLevel, number: i64) -> u64 {
    level.0 << LEVEL_SHIFT | (number as u64 & ((1 << LEVEL_SHIFT) - 1))
}

fn unpacked(word: u64) -> (HeapLevel, i64) {
    (HeapLevel(word >> LEVEL_SHIFT), (word << (u64::BITS - LEVEL_SHIFT)) as i64 >> (u64::BITS - LEVEL_SHIFT))
}

impl Peak {
    pub(crate) const fn new() -> Self {
        Self {
            sum: OwnLine(AtomicU64::new(0)),
            allowance: AtomicUsize::new(0),
            started: AtomicU64::new(0),
            reached: AtomicU64::new(0),
            no_stack: OwnLine(StackChange::new()),
            segments: [const { AtomicPtr::new(null_mut()) }; SEGMENTS],
            made: AtomicU32::new(0),
            mapped: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            fall: PeakFall::new(),
        }
    }

    /// Stores the current time as the time of the start.
    pub(crate) fn start(&self) {
        self.started.store(clock::nanoseconds(), Ordering::Relaxed);
    }

    /// The number of bytes mapped for the changes.
    pub(crate) fn mapped(&self) -> usize {
        self.mapped.load(Ordering::Relaxed)
    }

    /// The number of changes that are missing because memory was short.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The number of bytes that all threads together may keep pending, each thread an equal part.
    #[inline(always)]
    pub(crate) fn allowance(&self) -> usize {
        PENDING as usize + self.allowance.load(Ordering::Relaxed)
    }

    /// Adds the blocks that started and ended on a thread, in one step: a peak contains either all of them or none of
    /// them.
    pub(crate) fn add_pending(&self, tree: &TraceTree, pending: &PendingEvents) {
        let Some(level) = self.add_to_sum(pending.net()) else { return };
        let settled = pending.settled().filter(|(_, amount)| *amount != BlockAmount::default());
        self.add_few(
            tree,
            level,
            settled.filter_map(|(trace, amount)| match CompactChange::pack(amount) {
                Some(few) => Some((trace, few)),
                None => {
                    self.add_change(tree, level, trace, amount);
                    None
                }
            }),
        );
        // Amounts of events in the list fit into a word, so they are small.
        self.add_few(
            tree,
            level,
            pending.listed().map(|(trace, amount)| (trace, CompactChange::pack_small(amount))),
        );
    }

    /// For one stack, adds the blocks that started or ended.
    pub(crate) fn add(&self, tree: &TraceTree, trace: TraceId, amount: BlockAmount) {
        if let Some(level) = self.add_to_sum(amount.bytes) {
            self.add_change(tree, level, trace, amount);
        }
    }

    #[cold]
    fn add_change(&self, tree: &TraceTree, level: HeapLevel, trace: TraceId, amount: BlockAmount) {
        match self.change(tree.counted_node(trace)) {
            Some(change) => change.add(level, amount),
            None => _ = self.lost.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Adds to the changes of stacks. The first loop prefetches the nodes of a batch, the second loop prefetches the
    /// changes.
    #[inline(always)]
    fn add_few(
        &self,
        tree: &TraceTree,
        level: HeapLevel,
        mut entries: impl Iterator<Item = (TraceId, CompactChange)>,
    ) {
        loop {
            let mut nodes = [None; BATCH];
            let mut amounts = [CompactChange::default(); BATCH];
            let mut length = 0;
            for ((node, amount), (trace, few)) in nodes.iter_mut().zip(&mut amounts).zip(&mut entries) {
                *amount = few;
                *node = tree.counted_node(trace);
                if let Some(node) = *node {
                    memory::prefetch_to_read(node);
                }
                length += 1;
            }
            let mut changes = [None; BATCH];
            for (change, node) in changes.iter_mut().zip(&nodes[..length]) {
                *change = self.change(*node);
                if let Some(change) = *change {
                    memory::prefetch(change);
                }
            }
            for (change, few) in changes[..length].iter().zip(&amounts) {
                match change {
                    Some(change) => change.add_few(level, *few),
                    None => _ = self.lost.fetch_add(1, Ordering::Relaxed),
                }
            }
            if length < BATCH {
                return;
            }
        }
    }

    /// Adds to the sum. Returns the current level, since which the events are a change; `None` if they led to a new
    /// level.
    fn add_to_sum(&self, by: i64) -> Option<HeapLevel> {
        let mut old = self.sum.0.load(Ordering::Relaxed);
        loop {
            let (highest, before) = unpacked(old);
            let sum = before.wrapping_add(by);
            let level = HeapLevel::from_bytes(sum);
            let new = packed(level.max(highest), sum);
            match self.sum.0.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) if level > highest => {
                    self.reached.fetch_max(clock::nanoseconds(), Ordering::Relaxed);
                    self.allowance.store((level.pending() - PENDING) as usize, Ordering::Relaxed);
                    self.fall.reached(level.bytes());
                    return None;
                }
                Ok(_) => {
                    self.fall.at(sum);
                    return Some(highest);
                }
                Err(other) => old = other,
            }
        }
    }

    /// The level of the highest sum.
    pub(crate) fn level(&self) -> HeapLevel {
        unpacked(self.sum.0.load(Ordering::Relaxed)).0
    }

    /// Bytes of all blocks, without the bytes that threads keep pending.
    pub(crate) fn sum(&self) -> u64 {
        unpacked(self.sum.0.load(Ordering::Relaxed)).1.max(0) as u64
    }

    /// The change of a stack. Makes the change if the stack has none. Returns `None` if memory is short. `node` is
    /// `None` for blocks without a stack.
    #[inline]
    fn change(&self, node: Option<&StackNode>) -> Option<&StackChange> {
        let Some(node) = node else { return Some(&self.no_stack.0) };
        match node.change() {
            0 => self.numbered(node.set_change(self.make()?)),
            number => self.numbered(number),
        }
    }

    #[inline]
    fn numbered(&self, number: u32) -> Option<&StackChange> {
        let segment = self.segments.get(number as usize / SEGMENT)?.load(Ordering::Acquire);
        // SAFETY: the pointer is null or points to a segment of `make`. Segments are never unmapped.
        let segment = unsafe { segment.as_ref() }?;
        Some(&segment[number as usize % SEGMENT])
    }

    /// Makes a new change, and returns its number.
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

    /// Calls `each` for every stack with its change since a level.
    pub(crate) fn for_each_since(
        &self,
        level: HeapLevel,
        tree: &TraceTree,
        mut each: impl FnMut(TraceId, BlockAmount),
    ) {
        each(TraceId::NONE, self.no_stack.0.since(level));
        tree.for_each_change(|trace, number| {
            if let Some(change) = self.numbered(number) {
                each(trace, change.since(level));
            }
        });
    }

    /// The maximum difference in bytes between the true peak and the smallest sum of `level`: the bytes to the next
    /// level, and the bytes that threads kept pending. `threads` is the maximum number of threads at a time. The nth
    /// thread that started keeps at most one nth of the pending bytes that all threads together may keep.
    pub(crate) fn within(&self, level: HeapLevel, threads: usize) -> u64 {
        let pending: i64 = (1..=threads as i64).map(|nth| level.pending() / nth).sum();
        (level.step() + pending) as u64
    }

    /// Seconds from the start to the last new level, and from the start to now.
    pub(crate) fn seconds(&self) -> (f64, f64) {
        let started = self.started.load(Ordering::Relaxed);
        let since = |time: u64| time.saturating_sub(started) as f64 / 1e9;
        (since(self.reached.load(Ordering::Relaxed)), since(clock::nanoseconds()))
    }

    /// Forgets everything, for tests and between sessions of tracking. A change that another thread adds during the
    /// call may be lost, or stay.
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
