//! Blocks of a sample by bytes: few, and far apart. A page of lines goes back to the system when its last block ends. So
//! the table's memory follows the blocks that are alive.

use super::line::{BlockLine, KEYS};
use super::{BlockTable, TableBlock, TableLeaf, place_index};
#[cfg(target_os = "linux")]
use crate::system::{errno::keeping_errno, memory};

const PAGE: usize = 4096;
const LINES_IN_PAGE: usize = PAGE / size_of::<BlockLine>();
const _: () = assert!(size_of::<TableLeaf>().is_multiple_of(PAGE));

impl BlockTable {
    /// [`insert`](Self::insert) for a block that [`forget_page`](Self::forget_page) may have as a neighbour. The caller is
    /// inside the engine.
    pub(crate) fn insert_sampled(&self, address: usize, block: TableBlock) -> bool {
        let _held = self.pages.hold();
        self.insert(address, block)
    }

    /// Gives the page of an address back if it has no block. The caller is inside the engine.
    pub(crate) fn forget_page(&self, address: usize) {
        let Some(leaf) = self.middle(address).and_then(|middle| middle.leaf(address)) else { return };
        let page = place_index(address) / KEYS / LINES_IN_PAGE;
        let _held = self.pages.hold();
        give_back(&leaf.lines[page * LINES_IN_PAGE..][..LINES_IN_PAGE]);
    }

    /// Forgets all blocks, and gives the memory of their lines back. No other thread records a block meanwhile.
    pub(crate) fn release(&self) {
        self.clear();
        let _held = self.pages.hold();
        self.for_each_stretch(|_, leaf, _| {
            leaf.into_iter().flat_map(|leaf| leaf.lines.chunks(LINES_IN_PAGE)).for_each(give_back);
        });
    }
}

/// Gives a page of a leaf back if all its lines are free. A line that others follow stays, or those would be lost. Where
/// the system's pages are larger, they stay, too: they hold other lines.
#[cfg(target_os = "linux")]
fn give_back(lines: &[BlockLine]) {
    if lines.iter().all(BlockLine::is_free) && memory::page_size() == PAGE as u64 {
        // SAFETY: a page of the system, of a private mapping without a file. It is zero from then on, as lines without a block
        // are, and no block comes meanwhile: a thread that inserts one holds the lock.
        keeping_errno(|| unsafe {
            libc::madvise(lines.as_ptr().cast_mut().cast(), PAGE, libc::MADV_DONTNEED)
        });
    }
}

/// Does nothing: other systems do not promise that such a page is zero from then on.
#[cfg(not(target_os = "linux"))]
fn give_back(_lines: &[BlockLine]) {}
