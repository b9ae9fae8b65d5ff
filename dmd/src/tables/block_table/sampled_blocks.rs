//! Blocks of a sample by bytes: few, and far apart. The page of words around such a block goes back to the system when
//! the page has no block any more, so that the table's memory follows the blocks that are alive, and not all places
//! where a sampled block ever was.

use core::sync::atomic::Ordering;

use super::{Block, LIVE, SIZE, TAG, Table, word_index};
use crate::system::errno::keeping_errno;

const PAGE: usize = 4096;
const WORDS_IN_PAGE: usize = PAGE / size_of::<u64>();

impl Table {
    /// [`insert`](Self::insert) for a block that [`forget_page`](Self::forget_page) may have as a neighbour. The caller is
    /// inside the engine.
    pub(crate) fn insert_sampled(&self, address: usize, block: Block) -> bool {
        let _held = self.pages.hold();
        self.insert(address, block)
    }

    /// Gives the page of an address back if it has no block. The caller is inside the engine.
    pub(crate) fn forget_page(&self, address: usize) {
        let Some(leaf) = self.leaf(address) else { return };
        let first = word_index(address) / WORDS_IN_PAGE * WORDS_IN_PAGE;
        let words = &leaf.words[first..first + WORDS_IN_PAGE];
        let _held = self.pages.hold();
        let is_used = |tag| tag == LIVE || tag == SIZE;
        if !words.iter().any(|word| is_used(word.load(Ordering::Relaxed) & TAG)) {
            // SAFETY: a page of a private mapping without a file. It is zero from then on, as words without a block are,
            // and no block comes meanwhile: a thread that inserts one holds the lock.
            keeping_errno(|| unsafe {
                libc::madvise(words.as_ptr().cast_mut().cast(), PAGE, libc::MADV_DONTNEED)
            });
        }
    }
}
