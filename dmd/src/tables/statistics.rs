//! Counts of starts and ends of blocks.

use core::sync::atomic::{AtomicU64, Ordering};

/// The counts of one thread, or of all events without a thread.
#[derive(Debug)]
pub(crate) struct EventCounts {
    begun: AtomicU64,
    ended: AtomicU64,
    /// The number of moves that began. Each move also counts as an end, and its new block counts as a start.
    moved: AtomicU64,
    temporary: AtomicU64,
}

/// The sum of the counts of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventStatistics {
    /// The number of new blocks, without blocks that a move made.
    pub(crate) allocations: u64,
    pub(crate) frees: u64,
    pub(crate) reallocations: u64,
    /// The number of blocks that a thread freed or moved before it allocated another block.
    pub(crate) temporary: u64,
}

/// The way in which a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockEnd {
    Freed,
    Moved,
}

impl EventCounts {
    pub(crate) const fn new() -> Self {
        Self {
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            temporary: AtomicU64::new(0),
        }
    }

    /// Counts a new block. Any thread may call this.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an end. Any thread may call this.
    pub(crate) fn end(&self, end: BlockEnd) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        if end == BlockEnd::Moved {
            self.moved.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes back the count of a move that did not happen.
    pub(crate) fn roll_back(&self) {
        self.ended.fetch_sub(1, Ordering::Relaxed);
        self.moved.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts starts and ends of blocks. Only the thread that owns these counts may call this.
    pub(crate) fn add(&self, begun: u64, ended: u64) {
        add(&self.begun, begun);
        add(&self.ended, ended);
    }

    /// Counts a move; its end is counted separately. Only the thread that owns these counts may call this.
    pub(crate) fn add_move(&self) {
        add(&self.moved, 1);
    }

    /// Counts a temporary block. Only the thread that owns these counts may call this.
    #[inline(always)]
    pub(crate) fn add_temporary(&self) {
        add(&self.temporary, 1);
    }

    pub(crate) fn clear(&self) {
        for count in [&self.begun, &self.ended, &self.moved, &self.temporary] {
            count.store(0, Ordering::Relaxed);
        }
    }
}

impl EventStatistics {
    pub(crate) fn add(&mut self, counts: &EventCounts) {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let moved = get(&counts.moved);
        // Moves that did not happen are subtracted from the counts that belong to no thread, so these may wrap.
        self.allocations = self.allocations.wrapping_add(get(&counts.begun)).wrapping_sub(moved);
        self.frees = self.frees.wrapping_add(get(&counts.ended)).wrapping_sub(moved);
        self.reallocations = self.reallocations.wrapping_add(moved);
        self.temporary = self.temporary.wrapping_add(get(&counts.temporary));
    }

    /// Adds blocks that are not in any count yet.
    pub(crate) fn add_events(&mut self, begun: u64, ended: u64) {
        self.allocations = self.allocations.wrapping_add(begun);
        self.frees = self.frees.wrapping_add(ended);
    }
}

/// Adds to a count that only one thread writes.
#[inline(always)]
fn add(count: &AtomicU64, by: u64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}
