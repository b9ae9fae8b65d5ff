//! The blocks that start in one short part of the heap: a line of the processor's cache, with a cell for each block.
//!
//! A cell belongs to the block that it describes. After the end of the block, the next block that takes the cell owns
//! it. A block starts at one of 32 places in this part of the heap, its *key*. A key has at most one cell, or three
//! cells if they include the sizes of a wide block. In each line, a key can use only two cells, so that a search is
//! short. If the cells of a line are not enough, another line follows it. Lines are never removed from a chain, so the
//! length of a chain depends only on the highest number of blocks that were live there at the same time.
//!
//! A thread takes a free cell by an exchange, since other threads may record blocks in the same part of the heap.
//! After that, only the thread that owns the block changes the cell. The mark bit is an exception: any thread may set
//! it by an exchange.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use dmd_format::tables::CELLS;
pub(super) use dmd_format::tables::LINE_BITS;

use super::GRAIN_BITS;
use super::word::{FREED, KEY, KEY_BITS, KEY_SHIFT, LIVE, SIZE, SIZE_SHIFT, SLOP, TAG, is_live};
use crate::system::memory::ZeroedPool;

pub(super) const KEYS: usize = 1 << KEY_BITS;

/// The bit that is set in cells of live blocks and of sizes, and clear in free cells.
const TAKEN: u64 = 1;
/// The word of a free cell that names no block.
const UNUSED: u64 = FREED | SLOP;
const _: () = assert!(LIVE & TAKEN != 0 && SIZE & TAKEN != 0 && FREED & TAKEN == 0);

/// A line of cells. All zero at first. One line takes an eighth of the heap that it covers, and is enough for blocks
/// of 100 bytes.
#[repr(C, align(64))]
pub(crate) struct BlockLine {
    cells: [AtomicU64; CELLS],
    next: AtomicPtr<BlockLine>,
}

/// The key of an address, in the bits of a word.
#[inline(always)]
pub(super) fn key_of(address: usize) -> u64 {
    (address as u64) << (KEY_SHIFT - GRAIN_BITS) & KEY
}

/// The place that the key of a word names.
#[inline(always)]
pub(super) fn place_of(word: u64) -> usize {
    ((word & KEY) >> KEY_SHIFT) as usize
}

impl BlockLine {
    #[inline(always)]
    fn next(&self) -> Option<&BlockLine> {
        // SAFETY: the pointer is null or points to a line of `lengthen`, and the table never unmaps one.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    fn chain(&self) -> impl Iterator<Item = &BlockLine> {
        core::iter::successors(Some(self), |line| line.next())
    }

    /// Whether the line has no blocks, and no line follows it.
    pub(super) fn is_free(&self) -> bool {
        let is_taken = |cell: &AtomicU64| cell.load(Ordering::Relaxed) & TAKEN != 0;
        self.next.load(Ordering::Acquire).is_null() && !self.cells.iter().any(is_taken)
    }

    /// All cells of a chain.
    pub(super) fn cells(&self) -> impl Iterator<Item = &AtomicU64> {
        self.chain().flat_map(|line| &line.cells)
    }

    /// The two cells of this line that a block with this key may use, in the order of the search.
    ///
    /// A cell that was used once is never empty again, and a block takes the first empty cell in this order. So a
    /// search for a key ends at the first empty cell.
    #[inline(always)]
    fn choices(&self, key: u64) -> [&AtomicU64; 2] {
        let first = place_of(key) * CELLS / KEYS;
        [&self.cells[first], &self.cells[if first + 1 < CELLS { first + 1 } else { 0 }]]
    }

    /// The cell of the live block with this key, and the word there.
    #[inline(always)]
    pub(super) fn live(&self, key: u64) -> Option<(&AtomicU64, u64)> {
        let mut line = self;
        loop {
            let [first, second] = line.choices(key);
            let word = first.load(Ordering::Acquire);
            if is_live(word, key) {
                return Some((first, word));
            }
            if word == 0 {
                return None;
            }
            let word = second.load(Ordering::Acquire);
            if is_live(word, key) {
                return Some((second, word));
            }
            if word == 0 {
                return None;
            }
            line = line.next()?;
        }
    }

    /// The cell of the live or freed block with this key.
    pub(super) fn find(&self, key: u64) -> Option<&AtomicU64> {
        self.cells().find(|cell| is_block(cell.load(Ordering::Acquire), key))
    }

    /// Stores the word of a live block. It replaces the word of a live block with the same key. Returns `None` if
    /// there is no memory.
    pub(super) fn store(&self, word: u64, pool: &ZeroedPool<BlockLine>) -> Option<()> {
        loop {
            match self.cell_for(word & KEY) {
                Some((cell, old)) => {
                    if cell.compare_exchange(old, word, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                        return Some(());
                    }
                }
                None => self.lengthen(pool)?,
            }
        }
    }

    /// The cell for a block with this key, and the word in it. This is the cell of the key or, if there is none, a
    /// free cell. An empty cell is preferred, because other free cells still name freed blocks.
    #[inline(always)]
    pub(super) fn cell_for(&self, key: u64) -> Option<(&AtomicU64, u64)> {
        let mut free = None;
        let mut line = self;
        loop {
            for cell in line.choices(key) {
                let word = cell.load(Ordering::Acquire);
                if is_block(word, key) || word == 0 {
                    return Some((cell, word));
                }
                if word & TAKEN == 0 && free.is_none() {
                    free = Some((cell, word));
                }
            }
            match line.next() {
                Some(next) => line = next,
                None => return free,
            }
        }
    }

    /// Adds a line to the chain. Returns `None` if there is no memory.
    #[cold]
    #[inline(never)]
    fn lengthen(&self, pool: &ZeroedPool<BlockLine>) -> Option<()> {
        let fresh = pool.take();
        if fresh.is_null() {
            return None;
        }
        let mut line = self;
        loop {
            // If another thread was faster, this line is added after that thread's line.
            match line.next.compare_exchange(null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(()),
                Err(_) => line = line.next()?,
            }
        }
    }

    /// Stores the sizes of a wide block. The caller stores the block's word afterwards. Returns `None` if there is no
    /// memory.
    #[cold]
    pub(super) fn store_sizes(
        &self,
        key: u64,
        requested: u64,
        slop: u64,
        pool: &ZeroedPool<BlockLine>,
    ) -> Option<()> {
        for (which, size) in [(0, requested), (SLOP, slop)] {
            let word = size << SIZE_SHIFT | key | which | SIZE;
            loop {
                let cells = || self.cells().map(|cell| (cell, cell.load(Ordering::Acquire)));
                let own = cells().find(|(_, word)| is_size(*word, key, which));
                let Some((cell, old)) = own.or_else(|| cells().find(|(_, word)| word & TAKEN == 0)) else {
                    self.lengthen(pool)?;
                    continue;
                };
                if cell.compare_exchange(old, word, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                    break;
                }
            }
        }
        Some(())
    }

    /// The requested bytes and the slop of a wide block. `None` if the block has ended in the meantime.
    pub(super) fn sizes(&self, key: u64) -> Option<(u64, u64)> {
        let size = |which| {
            let mut words = self.cells().map(|cell| cell.load(Ordering::Acquire));
            Some(words.find(|word| is_size(*word, key, which))? >> SIZE_SHIFT)
        };
        Some((size(0)?, size(SLOP)?))
    }

    /// Frees the cells with the sizes of a wide block. They do not become empty: see [`choices`](Self::choices).
    #[cold]
    pub(super) fn remove_sizes(&self, key: u64) {
        for cell in self.cells() {
            let word = cell.load(Ordering::Relaxed);
            if is_size(word, key, 0) || is_size(word, key, SLOP) {
                cell.store(UNUSED, Ordering::Release);
            }
        }
    }

    /// The last place of a live block in the range from one place to another, both included. Calls `look` for each
    /// cell.
    pub(super) fn last_live(&self, from: u64, to: u64, look: impl Fn()) -> Option<usize> {
        let words = self.cells().map(|cell| cell.load(Ordering::Acquire)).inspect(|_| look());
        let live = words.filter(|word| word & TAG == LIVE && (from..=to).contains(&(word & KEY)));
        live.map(place_of).max()
    }
}

/// Whether a word belongs to a live or freed block with this key.
#[inline(always)]
pub(super) fn is_block(word: u64, key: u64) -> bool {
    is_live(word, key) || word == FREED | key
}

fn is_size(word: u64, key: u64, which: u64) -> bool {
    word & (TAG | KEY | SLOP) == SIZE | key | which
}
