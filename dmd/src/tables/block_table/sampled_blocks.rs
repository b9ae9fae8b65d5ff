//! Blocks of a sample by bytes. They are few, and far apart. When the last block in a page of lines ends, the page
//! goes back to the system. So the size of the table depends on the live blocks.

use super::line::{BlockLine, KEYS};
use super::{BlockTable, TableBlock, TableLeaf, place_index};
#[cfg(target_os = "linux")]
use crate::system::{errno::keeping_errno, memory};

const PAGE: usize = 4096;
const LINES_IN_PAGE: usize = PAGE / size_of::<BlockLine>();
const _: () = assert!(size_of::<TableLeaf>().is_multiple_of(PAGE));

impl BlockTable {
    /// Like [`insert`](Self::insert), for a block in a page that [`forget_page`](Self::forget_page) may give back. The
    /// caller is inside the engine's guard.
    pub(crate) fn insert_sampled(&self, address: usize, block: TableBlock) -> bool {
        let _held = self.pages.hold();
        self.insert(address, block)
    }

    /// Gives the page of an address back if the page has no block. The caller is inside the engine's guard.
    pub(crate) fn forget_page(&self, address: usize) {
        let Some(leaf) = self.middle(address).and_then(|middle| middle.leaf(address)) else { return };
        let page = place_index(address) / KEYS / LINES_IN_PAGE;
        let _held = self.pages.hold();
        give_back(&leaf.lines[page * LINES_IN_PAGE..][..LINES_IN_PAGE]);
    }

    /// Forgets all blocks, and gives the memory of their lines back. A block that another thread records during the
    /// call may be lost, or stay until the next call.
    pub(crate) fn release(&self) {
        self.clear();
        let _held = self.pages.hold();
        self.for_each_stretch(|_, leaf, _| {
            leaf.into_iter().flat_map(|leaf| leaf.lines.chunks(LINES_IN_PAGE)).for_each(give_back);
        });
    }
}

/// Gives a page of a leaf back if all its lines are free. The first line of a chain is not free if other lines follow,
/// because it holds the pointer to them. If the system's pages are larger than `PAGE`, no page is given back, because
/// such a page also contains lines outside of `lines`.
#[cfg(target_os = "linux")]
fn give_back(lines: &[BlockLine]) {
    if lines.iter().all(BlockLine::is_free) && memory::page_size() == PAGE as u64 {
        // SAFETY: this is a page of the system, in a private mapping without a file. After the call the page is zero,
        // like lines without blocks. Lines consist of atomic words, so another thread may insert a block at the same
        // time: the call removes the block or leaves it.
        keeping_errno(|| unsafe {
            libc::madvise(lines.as_ptr().cast_mut().cast(), PAGE, libc::MADV_DONTNEED)
        });
    }
}

/// Does nothing: other systems do not guarantee that such a page becomes zero.
#[cfg(not(target_os = "linux"))]
fn give_back(_lines: &[BlockLine]) {}
