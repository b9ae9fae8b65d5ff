//! Which tag each block of the declared allocator carries.
//!
//! A thread has at most one current tag. A block that it allocates meanwhile carries that tag until a thread frees it,
//! whichever thread that is; a block that grows or moves keeps its tag. Nothing counts while the program runs: the
//! [`table`] has the tag and the size of each block, and a collection adds these up.
//!
//! Invariant: a block has a tag in the table if and only if its allocator got the layout [`raised`]. Each hook asks for
//! the tag before it passes a layout on, so the allocator gets back the layout that it got.
//!
//! Called inside allocation: nothing here allocates through the hook, holds a lock or panics.

mod table;

use core::alloc::Layout;
use core::cell::Cell;

/// A number from 1 to [`LAST_TAG`], or [`NO_TAG`].
pub(crate) type TagNumber = u16;

pub(crate) const NO_TAG: TagNumber = 0;
pub(crate) const LAST_TAG: TagNumber = table::LAST_TAG;

std::thread_local! {
    /// This thread's tag. Without a destructor, so always accessible.
    static CURRENT: Cell<TagNumber> = const { Cell::new(NO_TAG) };
}

/// A block with a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaggedBlock {
    pub(crate) start: usize,
    pub(crate) tag: TagNumber,
    /// Usable bytes.
    pub(crate) bytes: usize,
}

/// The current tag of this thread.
#[inline]
pub(crate) fn current() -> TagNumber {
    CURRENT.get()
}

/// Gives this thread a tag, or none.
pub(crate) fn set_current(tag: TagNumber) {
    CURRENT.set(tag);
}

/// Whether any block has ever had a tag.
#[inline]
pub(crate) fn in_use() -> bool {
    table::in_use()
}

/// The layout with which a block gets a tag: the block then shares no granule of the table with another block's start.
/// `None` if there is no such layout.
#[inline]
#[allow(unsafe_code, reason = "a check that the compiler does not leave out")]
pub(super) fn raised(layout: Layout) -> Option<Layout> {
    let (size, align) = (layout.size().max(table::GRANULE), layout.align().max(table::GRANULE));
    // SAFETY: `align` is a power of two, since both alignments are; and `size`, rounded up to it, is at most `isize::MAX`
    // if the condition holds.
    (size <= isize::MAX as usize - align).then(|| unsafe { Layout::from_size_align_unchecked(size, align) })
}

/// The layout that the allocator got for a live block; `layout` is the one that the program asked for.
#[inline]
pub(super) fn layout_of(block: *const u8, layout: Layout) -> Layout {
    match table::tag_of(block.addr()) {
        NO_TAG => layout,
        _ => raised(layout).unwrap_or(layout),
    }
}

/// Takes its tag from a block that ends. Returns the layout that the allocator got for it.
#[inline]
pub(super) fn remove_at_end(block: *const u8, layout: Layout) -> Layout {
    match table::remove(block.addr()) {
        NO_TAG => layout,
        _ => raised(layout).unwrap_or(layout),
    }
}

/// Gives a block of `bytes` usable bytes a tag. False if the system has no memory for the table.
#[inline]
pub(super) fn add(block: *const u8, tag: TagNumber, bytes: usize) -> bool {
    table::add(block.addr(), tag, bytes)
}

/// The tag of the block that starts here.
#[inline]
pub(super) fn tag_of(block: *const u8) -> TagNumber {
    table::tag_of(block.addr())
}

/// Takes its tag from a block that may end; returns the tag.
#[inline]
pub(super) fn remove(block: *const u8) -> TagNumber {
    table::remove(block.addr())
}

/// The block with a tag that starts here.
pub(crate) fn at(block: *const u8) -> Option<TaggedBlock> {
    table::at(block.addr())
}

/// The block with a tag that has this address inside, and starts at most `size` bytes before it.
pub(crate) fn around(inside: *const u8, size: usize) -> Option<TaggedBlock> {
    table::around(inside.addr(), size)
}

/// Calls `each` with every block that has a tag. If other threads allocate or free blocks meanwhile, some of these may be
/// missing.
pub(crate) fn for_each(each: impl FnMut(TaggedBlock)) {
    table::for_each(each);
}

/// Bytes of memory that the table takes.
pub(crate) fn table_bytes() -> usize {
    table::bytes()
}
