//! Events of one thread that the peak does not count yet, and how many events the thread had.
//!
//! Only the thread itself adds events, inside the engine. Other threads read them for a dump. The thread hands its
//! events over when the bytes that began and those that ended reach its share together, so that a peak which
//! another thread finds misses few of them.

use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::tables::block_table::Block;
use crate::tables::trace_id::TraceId;

/// Most events of a thread.
const MOST: usize = 64;

/// Blocks and requested bytes; negative if more ended than began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) blocks: i64,
    pub(crate) bytes: i64,
}

/// All zero at first.
struct Event {
    trace: AtomicU32,
    blocks: AtomicI64,
    bytes: AtomicI64,
}

/// All zero at first.
pub(crate) struct Pending {
    events: [Event; MOST],
    length: AtomicUsize,
    /// Bytes of all events, without their signs.
    gross: AtomicUsize,
    counts: Counts,
    /// The address of the block that this thread allocated last.
    last: AtomicUsize,
}

/// How often blocks began and ended.
#[derive(Debug)]
pub(crate) struct Counts {
    begun: AtomicU64,
    freed: AtomicU64,
    moved: AtomicU64,
    temporary: AtomicU64,
}

/// [`Counts`] at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    /// New blocks, without those that a move made.
    pub(crate) allocations: u64,
    pub(crate) frees: u64,
    pub(crate) reallocations: u64,
    /// Blocks that ended before their thread allocated another one.
    pub(crate) temporary: u64,
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Freed,
    Moved,
}

impl Counts {
    pub(crate) const fn new() -> Self {
        Self {
            begun: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            temporary: AtomicU64::new(0),
        }
    }

    fn of(&self, end: End) -> &AtomicU64 {
        match end {
            End::Freed => &self.freed,
            End::Moved => &self.moved,
        }
    }

    /// Counts a new block for any thread.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an end for any thread.
    pub(crate) fn end(&self, end: End) {
        self.of(end).fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a move that did not happen.
    pub(crate) fn roll_back(&self) {
        self.moved.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        for count in [&self.begun, &self.freed, &self.moved, &self.temporary] {
            count.store(0, Ordering::Relaxed);
        }
    }
}

impl Statistics {
    pub(crate) fn add(&mut self, counts: &Counts) {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let moved = get(&counts.moved);
        // The number of a move that did not happen is subtracted for any thread, and wraps there.
        self.allocations = self.allocations.wrapping_add(get(&counts.begun)).wrapping_sub(moved);
        self.frees = self.frees.wrapping_add(get(&counts.freed));
        self.reallocations = self.reallocations.wrapping_add(moved);
        self.temporary = self.temporary.wrapping_add(get(&counts.temporary));
    }
}

/// Adds for the only thread that writes.
#[inline(always)]
fn increment(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

impl Amount {
    /// One block.
    pub(crate) fn of(block: Block) -> Self {
        Self { blocks: 1, bytes: i64::try_from(block.requested).unwrap_or(i64::MAX) }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let Self { blocks, bytes } = other;
        Self { blocks: self.blocks.wrapping_add(blocks), bytes: self.bytes.wrapping_add(bytes) }
    }

    pub(crate) fn negative(self) -> Self {
        Self { blocks: self.blocks.wrapping_neg(), bytes: self.bytes.wrapping_neg() }
    }
}

impl Pending {
    /// A block of this thread begins.
    #[inline]
    pub(crate) fn begin(&self, address: usize, block: Block) {
        increment(&self.counts.begun);
        self.last.store(address, Ordering::Relaxed);
        self.push(block.trace, Amount::of(block));
    }

    /// This thread ends a block.
    #[inline]
    pub(crate) fn end(&self, address: usize, block: Block, end: End) {
        increment(self.counts.of(end));
        if self.last.load(Ordering::Relaxed) == address {
            self.last.store(0, Ordering::Relaxed);
            increment(&self.counts.temporary);
        }
        self.push(block.trace, Amount::of(block).negative());
    }

    #[inline]
    fn push(&self, trace: TraceId, amount: Amount) {
        let length = self.length.load(Ordering::Relaxed);
        let last = self.events.get(length.wrapping_sub(1));
        if let Some(last) = last.filter(|last| last.trace.load(Ordering::Relaxed) == trace.0) {
            last.set(trace, last.amount().plus(amount));
        } else if let Some(event) = self.events.get(length) {
            event.set(trace, amount);
            self.length.store(length + 1, Ordering::Release);
        }
        let gross = self.gross.load(Ordering::Relaxed).saturating_add(amount.bytes.unsigned_abs() as usize);
        self.gross.store(gross, Ordering::Relaxed);
    }

    /// Whether the events exceed this thread's share of `allowance`, which `threads` threads divide, or fill the log.
    #[inline]
    pub(crate) fn is_full(&self, allowance: usize, threads: usize) -> bool {
        self.length.load(Ordering::Relaxed) == MOST
            || self.gross.load(Ordering::Relaxed).saturating_mul(threads) >= allowance
    }

    /// The events, for a dump.
    pub(crate) fn events(&self) -> impl Iterator<Item = (TraceId, Amount)> + Clone {
        let length = self.length.load(Ordering::Acquire).min(MOST);
        self.events[..length]
            .iter()
            .map(|event| (TraceId(event.trace.load(Ordering::Relaxed)), event.amount()))
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Forgets the events.
    pub(crate) fn forget(&self) {
        self.length.store(0, Ordering::Relaxed);
        self.gross.store(0, Ordering::Relaxed);
    }
}

impl Event {
    fn amount(&self) -> Amount {
        Amount { blocks: self.blocks.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }

    fn set(&self, trace: TraceId, amount: Amount) {
        self.trace.store(trace.0, Ordering::Relaxed);
        self.blocks.store(amount.blocks, Ordering::Relaxed);
        self.bytes.store(amount.bytes, Ordering::Relaxed);
    }
}
