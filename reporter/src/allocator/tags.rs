//! The tags of the declared allocator's blocks.
//!
//! A thread has at most one current tag. A block that the thread allocates under a tag carries that tag until any
//! thread frees the block. A block that grows or moves keeps its tag. The [`table`] contains the tag and the size of
//! each block. Only a collection adds up the sizes, so an allocation does not need a counter for each tag. Tags that a
//! program asks to count (scopes, limits) have figures in [`tallies`].
//!
//! Invariant: a block has a tag in the table if and only if its allocator received the layout that [`raised`] returns.
//! Each hook looks up the tag before it passes on a layout, so the allocator always receives the same layout for a
//! block.
//!
//! These functions run inside allocations: they do not allocate through the hook, hold a lock or panic.

pub(crate) mod crossing;
mod kept_pages;
pub(crate) mod sites;
mod table;
pub(crate) mod tallies;

use core::alloc::Layout;
use core::cell::Cell;

use tallies::ResizedBlock;

/// A number from 1 to [`LAST_TAG`], or [`NO_TAG`].
pub(crate) type TagNumber = u16;

pub(crate) const NO_TAG: TagNumber = 0;
pub(crate) const LAST_TAG: TagNumber = table::LAST_TAG;

std::thread_local! {
    /// This thread's tag. It has no destructor, so it is always accessible.
    static CURRENT: Cell<TagNumber> = const { Cell::new(NO_TAG) };
}

/// A block with a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaggedBlock {
    pub(crate) start: usize,
    pub(crate) tag: TagNumber,
    /// The usable bytes of the block.
    pub(crate) bytes: usize,
}

/// The current tag of this thread.
#[inline]
pub(crate) fn current() -> TagNumber {
    CURRENT.get()
}

/// Sets or clears this thread's tag.
pub(crate) fn set_current(tag: TagNumber) {
    CURRENT.set(tag);
}

/// Whether any block has ever had a tag.
#[inline]
pub(crate) fn in_use() -> bool {
    table::in_use()
}

/// The layout to allocate a block with a tag. The block then starts at a granule of the table and reaches into the next
/// granule. `None` if the layout would be too large.
#[inline]
#[allow(unsafe_code, reason = "the condition holds, and the compiler would keep the safe function's check")]
pub(super) fn raised(layout: Layout) -> Option<Layout> {
    // The size of a layout is at most `isize::MAX`, so rounding up does not overflow.
    let size = layout.size().next_multiple_of(table::UNIT).max(table::LEAST_SIZE);
    let align = layout.align().max(table::GRANULE);
    // SAFETY: `align` is the larger of two powers of two. If the condition holds, `size` rounded up to `align` is at
    // most `isize::MAX`.
    (size <= isize::MAX as usize - align).then(|| unsafe { Layout::from_size_align_unchecked(size, align) })
}

/// The layout that the allocator received for a live block. `layout` is the layout that the program requested.
#[inline]
pub(super) fn layout_of(block: *const u8, layout: Layout) -> Layout {
    match table::tag_of(block.addr()) {
        NO_TAG => layout,
        _ => raised(layout).unwrap_or(layout),
    }
}

/// Removes the tag of a block that is freed, and counts the end of the block. Returns the layout that the allocator
/// received for the block.
#[inline]
pub(super) fn remove_at_end(block: *const u8, layout: Layout) -> Layout {
    let tag = table::remove(block.addr());
    let acting = current();
    if tag | acting == NO_TAG {
        return layout;
    }
    tallies::freed(tag, acting, layout.size());
    if tag == NO_TAG { layout } else { raised(layout).unwrap_or(layout) }
}

/// This thread, as the owner of a record.
#[inline]
fn thread() -> usize {
    CURRENT.with(|current| core::ptr::from_ref(current).addr())
}

/// Counts a new block of this thread's tag.
#[inline]
pub(super) fn count_new(tag: TagNumber, block: *const u8, layout: Layout, usable: usize) {
    tallies::allocated(tag, block, layout.size(), usable);
}

/// Counts a block of this thread for which the table had no memory.
pub(super) fn count_lost(tag: TagNumber) {
    tallies::lost(tag);
}

/// Counts a change of a block's size.
pub(super) fn count_resized(resized: &ResizedBlock) {
    tallies::reallocated(current(), resized);
}

/// Sets the tag of a block of `bytes` usable bytes. Returns false if the system has no memory for the table.
#[inline]
pub(super) fn add(block: *const u8, tag: TagNumber, bytes: usize) -> bool {
    table::add(block.addr(), tag, bytes)
}

/// The tag of the block that starts at this address, or [`NO_TAG`].
#[inline]
pub(super) fn tag_of(block: *const u8) -> TagNumber {
    table::tag_of(block.addr())
}

/// Removes the tag of a block that the allocator may free or move next. Returns the tag.
#[inline]
pub(super) fn remove(block: *const u8) -> TagNumber {
    table::remove(block.addr())
}

/// The tagged block that starts at this address; `None` if no tagged block starts there.
pub(crate) fn at(block: *const u8) -> Option<TaggedBlock> {
    table::at(block.addr())
}

/// The tagged block that contains this address and starts at most `size` bytes before the address.
pub(crate) fn around(inside: *const u8, size: usize) -> Option<TaggedBlock> {
    table::around(inside.addr(), size)
}

/// Calls `each` with every block that has a tag. Blocks that other threads allocate or free during the call may be
/// missing.
pub(crate) fn for_each(each: impl FnMut(TaggedBlock)) {
    table::for_each(each);
}

/// The bytes of memory that the table uses.
pub(crate) fn table_bytes() -> usize {
    table::bytes()
}
