//! The blocks that start in one short stretch of heap: a line of a processor's cache, with a cell for each block.
//!
//! A cell belongs to the block that it describes, and after the block's end to whoever takes it first. A block
//! starts at one of 32 places of the stretch, its *key*. A key has at most one cell, or three with the sizes of a
//! wide block, and in each line only two cells to choose from, so that a search is short. Where those of a line do not
//! suffice, another line follows it. Lines are never taken out of a chain, whose length depends only on how many
//! blocks lived there at once.
//!
//! A thread takes a free cell by exchange, since other threads may begin blocks in the same stretch. Only the thread
//! that owns the block changes the cell afterwards, except for the mark bit, which threads set by exchange.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use dmd_format::tables::CELLS;
pub(super) use dmd_format::tables::LINE_BITS;

use super::GRAIN_BITS;
use super::word::{FREED, KEY, KEY_BITS, KEY_SHIFT, LIVE, SIZE, SIZE_SHIFT, SLOP, TAG, is_live};
use crate::system::memory::ZeroedPool;

pub(super) const KEYS: usize = 1 << KEY_BITS;

/// The bit that live blocks and sizes have in common, and that free cells do not have.
const TAKEN: u64 = 1;
/// A free cell that names no block.
const UNUSED: u64 = FREED | SLOP;
const _: () = assert!(LIVE & TAKEN != 0 && SIZE & TAKEN != 0 && FREED & TAKEN == 0);

/// All zero at first. One line, an eighth of the heap, is enough for blocks of 100 bytes.
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
        // SAFETY: null, or a line of `lengthen`, and the table never unmaps one.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    fn chain(&self) -> impl Iterator<Item = &BlockLine> {
        core::iter::successors(Some(self), |line| line.next())
    }

    /// Whether neither a block nor another line needs this one.
    pub(super) fn is_free(&self) -> bool {
        let is_taken = |cell: &AtomicU64| cell.load(Ordering::Relaxed) & TAKEN != 0;
        self.next.load(Ordering::Acquire).is_null() && !self.cells.iter().any(is_taken)
    }

    /// All cells of a chain.
    pub(super) fn cells(&self) -> impl Iterator<Item = &AtomicU64> {
        self.chain().flat_map(|line| &line.cells)
    }

    /// The cells of this line in which a block with this key may be, its first choice first.
    ///
    /// A cell that was once used is never empty again, and a block takes an empty cell before it looks at a later one.
    /// So a search for a key ends at the first empty cell.
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

    /// The cell of the block with this key, which lives or was freed.
    pub(super) fn find(&self, key: u64) -> Option<&AtomicU64> {
        self.cells().find(|cell| is_block(cell.load(Ordering::Acquire), key))
    }

    /// Stores the word of a live block; `None` if there is no memory for it. The word replaces that of a live block
    /// with the same key.
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

    /// The cell for a block with this key, and the word there: the cell of its key or, if there is none, a free one. An
    /// empty cell is the best of these: the others still name blocks that were freed.
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

    /// Adds a line to the chain; `None` if there is no memory.
    #[cold]
    #[inline(never)]
    fn lengthen(&self, pool: &ZeroedPool<BlockLine>) -> Option<()> {
        let fresh = pool.take();
        if fresh.is_null() {
            return None;
        }
        let mut line = self;
        loop {
            // If another thread was faster, this line follows its line.
            match line.next.compare_exchange(null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(()),
                Err(_) => line = line.next()?,
            }
        }
    }

    /// Stores the sizes of a wide block, before its word; `None` if there is no memory.
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

    /// Requested bytes and slop of a wide block. `None` if it ended meanwhile.
    pub(super) fn sizes(&self, key: u64) -> Option<(u64, u64)> {
        let size = |which| {
            let mut words = self.cells().map(|cell| cell.load(Ordering::Acquire));
            Some(words.find(|word| is_size(*word, key, which))? >> SIZE_SHIFT)
        };
        Some((size(0)?, size(SLOP)?))
    }

    /// Frees the cells with the sizes of a wide block, which are not empty then: see [`choices`](Self::choices).
    #[cold]
    pub(super) fn remove_sizes(&self, key: u64) {
        for cell in self.cells() {
            let word = cell.load(Ordering::Relaxed);
            if is_size(word, key, 0) || is_size(word, key, SLOP) {
                cell.store(UNUSED, Ordering::Release);
            }
        }
    }

    /// The last place of a live block between two places, both included. Calls `look` for each cell.
    pub(super) fn last_live(&self, from: u64, to: u64, look: impl Fn()) -> Option<usize> {
        let words = self.cells().map(|cell| cell.load(Ordering::Acquire)).inspect(|_| look());
        let live = words.filter(|word| word & TAG == LIVE && (from..=to).contains(&(word & KEY)));
        live.map(place_of).max()
    }
}

/// Whether a word is that of a block with this key, which lives or was freed.
#[inline(always)]
pub(super) fn is_block(word: u64, key: u64) -> bool {
    is_live(word, key) || word == FREED | key
}

fn is_size(word: u64, key: u64, which: u64) -> bool {
    word & (TAG | KEY | SLOP) == SIZE | key | which
}
