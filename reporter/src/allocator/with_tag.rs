//! The allocation hooks for blocks with a tag.

use core::alloc::{GlobalAlloc, Layout};

use super::tags::tallies::ResizedBlock;
use super::tags::{self, NO_TAG, TagNumber, raised};
use super::{CountingAllocator, UsableSize, counters};

#[allow(unsafe_code, reason = "an allocator")]
impl<A: GlobalAlloc + UsableSize> CountingAllocator<A> {
    /// Allocates a block with a tag. The block gets no tag if the system has no memory for the table of tags, or if the
    /// raised layout would be too large.
    ///
    /// # Safety
    ///
    /// The size of `layout` is not 0, and `allocate` is `A::alloc` or `A::alloc_zeroed`.
    #[inline]
    pub(super) unsafe fn alloc_with_tag(
        &self,
        layout: Layout,
        tag: TagNumber,
        allocate: unsafe fn(&A, Layout) -> *mut u8,
    ) -> *mut u8 {
        if let Some(raised) = raised(layout) {
            // SAFETY: the caller guarantees that the size of `layout` is not 0. The size of `raised` is at least as
            // large, and `A` requires only a size that is not 0.
            let pointer = unsafe { allocate(&self.0, raised) };
            if pointer.is_null() {
                return pointer;
            }
            // SAFETY: `self.0` has just returned the block for this layout.
            let bytes = unsafe { self.0.usable_size(pointer, raised) };
            if tags::add(pointer, tag, bytes) {
                self.count_bytes(pointer, bytes);
                tags::count_new(tag, pointer, layout, bytes);
                return pointer;
            }
            tags::count_lost(tag);
            // SAFETY: `self.0` has just returned the block for this layout, and no other code has its address.
            unsafe { self.0.dealloc(pointer, raised) };
        }
        // SAFETY: the caller guarantees that the size of `layout` is not 0, which is all `A` requires.
        let pointer = unsafe { allocate(&self.0, layout) };
        self.count_new(pointer, layout);
        pointer
    }

    /// Changes the size of a block. A block with a tag keeps its tag. A block without a tag gets the current tag of
    /// the thread if it grows.
    ///
    /// # Safety
    ///
    /// The contract of `GlobalAlloc::realloc` applies.
    #[inline(never)]
    pub(super) unsafe fn realloc_with_tag(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that `size`, rounded up to `layout.align()`, does not exceed `isize::MAX`.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // Remove the tag first: another thread may get the address as soon as the allocator has moved the block.
        let tag = tags::remove(pointer);
        if tag == NO_TAG {
            // SAFETY: the contract of this method is the contract of that method.
            return unsafe { self.realloc_untagged(pointer, layout, wanted) };
        }
        let old = raised(layout).unwrap_or(layout);
        // SAFETY: the caller guarantees a live block of `self`. The block has a tag, so `self.0` allocated it with the
        // layout `old`.
        let before = unsafe { self.0.usable_size(pointer, old) };
        let Some(new) = raised(wanted) else {
            tags::add(pointer, tag, before);
            return core::ptr::null_mut();
        };
        // SAFETY: the caller guarantees a live block; `self.0` allocated it with the layout `old`. The size of `new` is
        // not 0, and does not exceed `isize::MAX` when it is rounded up to the alignment of `old`.
        let moved = unsafe { self.0.realloc(pointer, old, new.size()) };
        if moved.is_null() {
            // The table has room, since the block had a tag a moment ago.
            tags::add(pointer, tag, before);
            return moved;
        }
        counters::freed(before);
        // SAFETY: `self.0` has just returned the block for this layout.
        let bytes = unsafe { self.0.usable_size(moved, new) };
        self.count_bytes(moved, bytes);
        let has_tag = tags::add(moved, tag, bytes);
        tags::count_resized(&ResizedBlock {
            before: tag,
            after: if has_tag { tag } else { NO_TAG },
            block: moved,
            old_size: layout.size(),
            new_size: size,
            usable: bytes,
        });
        if has_tag || new == wanted {
            return moved;
        }
        // A block without a tag needs the layout that the program passes when it frees the block.
        // SAFETY: the caller guarantees that `size` is not 0, which is all `A` requires.
        let plain = unsafe { self.0.alloc(wanted) };
        if plain.is_null() {
            // The old block is already freed, so the method cannot return null.
            std::alloc::handle_alloc_error(wanted);
        }
        self.count_new(plain, wanted);
        // SAFETY: `self.0` has returned `moved` for `new` and `plain` for `wanted`; both are live.
        unsafe { self.move_contents(moved, new, plain, wanted) };
        plain
    }

    /// Changes the size of a block without a tag. A block that grows gets the current tag of the thread.
    ///
    /// # Safety
    ///
    /// The contract of `GlobalAlloc::realloc` applies, and the size of `wanted` is the new size.
    unsafe fn realloc_untagged(&self, pointer: *mut u8, layout: Layout, wanted: Layout) -> *mut u8 {
        let current = tags::current();
        let mut after = NO_TAG;
        let (mut moved, mut bytes) = (core::ptr::null_mut(), 0);
        // The layout of the old block may be too small for a tag, so the block cannot grow in place.
        if wanted.size() > layout.size()
            && let Some(raised) = raised(wanted)
        {
            // SAFETY: the caller guarantees that the size is not 0, and `raised` is at least as large.
            moved = unsafe { self.0.alloc(raised) };
            if moved.is_null() {
                return moved;
            }
            // SAFETY: `self.0` has just returned the block for this layout.
            bytes = unsafe { self.0.usable_size(moved, raised) };
            if tags::add(moved, current, bytes) {
                after = current;
                self.count_bytes(moved, bytes);
                // SAFETY: the caller guarantees a live block with the layout `layout`. The new block is at least as
                // large, and does not overlap the old block.
                unsafe { self.move_contents(pointer, layout, moved, wanted) };
            } else {
                tags::count_lost(current);
                // SAFETY: `self.0` has just returned the block for this layout, and no other code has its address.
                unsafe { self.0.dealloc(moved, raised) };
            }
        }
        if after == NO_TAG {
            // SAFETY: the caller guarantees a live block of `self`; `self.0` allocated it with this layout.
            let before = unsafe { self.0.usable_size(pointer, layout) };
            // SAFETY: the caller guarantees a live block with this layout, which `self.0` allocated, and a valid size
            // that is not 0.
            moved = unsafe { self.0.realloc(pointer, layout, wanted.size()) };
            if moved.is_null() {
                return moved;
            }
            counters::freed(before);
            // SAFETY: `self.0` has just returned the block for this layout.
            bytes = unsafe { self.0.usable_size(moved, wanted) };
            self.count_bytes(moved, bytes);
        }
        tags::count_resized(&ResizedBlock {
            before: NO_TAG,
            after,
            block: moved,
            old_size: layout.size(),
            new_size: wanted.size(),
            usable: bytes,
        });
        moved
    }

    /// Copies the contents of the block `from` to the block `to`, and frees `from`.
    ///
    /// # Safety
    ///
    /// `from` and `to` are live blocks of `self.0` with these layouts and do not overlap. `from` has no tag.
    unsafe fn move_contents(&self, from: *mut u8, old: Layout, to: *mut u8, new: Layout) {
        // SAFETY: the caller guarantees two live blocks of at least this size that do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(from, to, old.size().min(new.size())) };
        // SAFETY: the caller guarantees a live block of `self.0` with this layout.
        counters::freed(unsafe { self.0.usable_size(from, old) });
        // SAFETY: the caller guarantees a live block of `self.0` with this layout, and does not use it after this
        // call.
        unsafe { self.0.dealloc(from, old) };
    }
}
