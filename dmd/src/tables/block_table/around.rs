//! Finds the block around an address.
//!
//! A search backwards over the lines finds small blocks. A large block may start far before the address, and the lines
//! in between contain no information about it. So each range of the heap has a place with the start of the large block
//! that was recorded last in it. Blocks do not overlap. So at any time, at most one block that is at least as long as a
//! range starts in the range. A search looks up the block that a place names, so a free does not have to change the
//! place.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::line::{LINE_BITS, key_of};
use super::{ADDRESS_BITS, BlockTable, GRAIN_BITS, MIDDLE_BITS, PLANES, TableBlock};

/// Blocks with at least this many usable bytes have a place; lines are enough to find smaller blocks.
pub(super) const LARGE: usize = 1 << LARGE_BITS;
const LARGE_BITS: u32 = 14;
const LONG_BITS: u32 = 20;
const HUGE_BITS: u32 = 28;
const VAST_BITS: u32 = 35;

/// The lengths of the ranges of each kind, as powers of two. A block belongs to the longest kind whose ranges are not
/// longer than the block.
const STRETCHES: [u32; 4] = [LARGE_BITS, LONG_BITS, HUGE_BITS, VAST_BITS];

/// The starts of large blocks in the address range of one `MiddleTable`. All zero at first.
pub(super) struct InMiddle {
    large: [AtomicUsize; 1 << (MIDDLE_BITS - LARGE_BITS)],
    long: [AtomicUsize; 1 << (MIDDLE_BITS - LONG_BITS)],
    huge: [AtomicUsize; 1 << (MIDDLE_BITS - HUGE_BITS)],
}

/// The starts of blocks with at least 2^[`VAST_BITS`] usable bytes, for all planes.
pub(super) struct InTable {
    vast: [AtomicUsize; 1 << (ADDRESS_BITS - VAST_BITS)],
}

impl InTable {
    pub(super) const fn new() -> Self {
        Self { vast: [const { AtomicUsize::new(0) }; 1 << (ADDRESS_BITS - VAST_BITS)] }
    }
}

impl BlockTable {
    /// Stores the start of a large block. The block is already recorded.
    #[cold]
    pub(super) fn note_start(&self, address: usize, usable: usize) {
        if usable > self.largest.load(Ordering::Relaxed) {
            self.largest.fetch_max(usable, Ordering::Relaxed);
        }
        let kind = STRETCHES.iter().rposition(|bits| usable >> bits != 0).unwrap_or(0);
        if let Some(place) = self.place(kind, address) {
            place.store(address, Ordering::Release);
        }
    }

    /// The live block that contains this address, and the start of the block.
    pub(super) fn around(&self, address: usize) -> Option<(usize, TableBlock)> {
        let planes = (0..PLANES).filter(|plane| self.root(*plane).is_some());
        let found = planes.filter_map(|plane| {
            let last = (address.checked_sub(plane)? >> GRAIN_BITS << GRAIN_BITS) + plane;
            self.small_around(address, last).or_else(|| self.large_around(address, last))
        });
        found.max_by_key(|(start, _)| *start)
    }

    /// Finds a small block. `last` is the last address that is in the plane and not after `address`.
    fn small_around(&self, address: usize, mut last: usize) -> Option<(usize, TableBlock)> {
        let plane = last % PLANES;
        let first = last.saturating_sub(LARGE - (1 << GRAIN_BITS)).max(plane);
        loop {
            let start = (last >> LINE_BITS << LINE_BITS) + plane;
            let from = first.max(start);
            let found = self.line(last).and_then(|line| line.last_live(key_of(from), key_of(last), looked));
            if let Some(place) = found {
                return self.if_around(address, start + (place << GRAIN_BITS));
            }
            if from == first {
                return None;
            }
            last = from - (1 << GRAIN_BITS);
        }
    }

    /// Finds a large block. `last` is the last address that is in the plane and not after `address`.
    fn large_around(&self, address: usize, last: usize) -> Option<(usize, TableBlock)> {
        let largest = self.largest.load(Ordering::Relaxed);
        STRETCHES.iter().enumerate().find_map(|(kind, bits)| {
            let longest = STRETCHES.get(kind + 1).map_or(largest, |next| largest.min(1 << next));
            if longest >> bits == 0 {
                return None;
            }
            // The block may start at the end of the first range, and end at the start of the last range.
            let stretches = (longest >> bits) + 1;
            (0..=stretches).find_map(|back| {
                looked();
                let start = self.place(kind, last.checked_sub(back << bits)?)?.load(Ordering::Acquire);
                self.if_around(address, start)
            })
        })
    }

    /// The block at `start`, if it is live and contains the address.
    fn if_around(&self, address: usize, start: usize) -> Option<(usize, TableBlock)> {
        let distance = address.checked_sub(start)?;
        let block = self.get(start)?;
        (distance < block.usable()).then_some((start, block))
    }

    /// The place for blocks of a kind that start in the range of this address.
    fn place(&self, kind: usize, address: usize) -> Option<&AtomicUsize> {
        let within = |stretch: u32| (address & ((1 << MIDDLE_BITS) - 1)) >> stretch;
        match kind {
            0 => self.middle(address)?.starts.large.get(within(LARGE_BITS)),
            1 => self.middle(address)?.starts.long.get(within(LONG_BITS)),
            2 => self.middle(address)?.starts.huge.get(within(HUGE_BITS)),
            _ => self.starts.vast.get(address >> VAST_BITS),
        }
    }
}

/// Counts the reads of a search, for tests.
#[inline(always)]
fn looked() {
    #[cfg(test)]
    super::tests::LOOKS.set(super::tests::LOOKS.get() + 1);
}
