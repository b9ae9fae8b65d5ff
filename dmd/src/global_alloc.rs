//! The door for Rust programs: a wrapper around the global allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::any::TypeId;
use std::alloc::System;

use memory_reporter::{AllocatorStatistics, UsableSize};

use crate::door::{self, Door};
use crate::internal_alloc;
use crate::options::Options;

/// An allocator whose blocks are recorded, if `$DMD` says so.
///
/// ```
/// use std::alloc::System;
///
/// #[global_allocator]
/// static ALLOCATOR: dmd::Dmd<System> = dmd::Dmd::new(System);
/// # fn main() {}
/// ```
///
/// Under a preloaded `libdmd.so` blocks are recorded there, and once. On systems where nothing can be recorded it
/// only forwards.
///
/// The report's `heap-allocated` is known while blocks are recorded. To have it always, let
/// `memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System))` declare the wrapper.
///
/// Sizes are usable bytes if it is known how to ask the allocator: of `System`, of any that
/// [`with_usable_size`](Self::with_usable_size) takes, and of jemalloc and mimalloc with the feature of
/// that name. Of others they are what was asked for.
#[derive(Debug)]
pub struct Dmd<A> {
    allocator: A,
    options: Option<Options>,
    usable_size: Option<AskUsableSize<A>>,
}

type AskUsableSize<A> = unsafe fn(&A, *const u8, Layout) -> usize;

impl<A: GlobalAlloc + 'static> Dmd<A> {
    /// Records if the variable `DMD` is set, as it says.
    pub const fn new(allocator: A) -> Self {
        Self { allocator, options: None, usable_size: None }
    }

    /// Records, whatever the variable `DMD` says: for tests.
    pub const fn switched_on(allocator: A, options: Options) -> Self {
        Self { allocator, options: Some(options), usable_size: None }
    }

    /// The usable bytes of a live block.
    #[inline(always)]
    fn usable(&self, block: *mut u8, layout: Layout) -> usize {
        if let Some(ask) = self.usable_size {
            // SAFETY: a live block of this allocator with its layout.
            return unsafe { ask(&self.allocator, block, layout) };
        }
        if TypeId::of::<A>() == TypeId::of::<System>() {
            // SAFETY: a live block of `System` with its layout.
            return unsafe { System.usable_size(block, layout) };
        }
        #[cfg(feature = "jemalloc")]
        if TypeId::of::<A>() == TypeId::of::<tikv_jemallocator::Jemalloc>() {
            // SAFETY: a live block of jemalloc with its layout.
            return unsafe { tikv_jemallocator::Jemalloc.usable_size(block, layout) };
        }
        #[cfg(feature = "mimalloc")]
        if TypeId::of::<A>() == TypeId::of::<mimalloc::MiMalloc>() {
            // SAFETY: a live block of mimalloc with its layout.
            return unsafe { mimalloc::MiMalloc.usable_size(block, layout) };
        }
        layout.size()
    }

    #[inline(always)]
    fn new_block(&self, layout: Layout, allocate: impl Fn(&A) -> *mut u8) -> *mut u8 {
        let Some(door) = door::current(&self.options) else { return allocate(&self.allocator) };
        if door.is_ours_and_inside() {
            let block = internal_alloc::alloc(layout);
            if !block.is_null() {
                return block;
            }
        }
        let block = door.guarded(|| allocate(&self.allocator));
        if !block.is_null() {
            let usable = door.guarded(|| self.usable(block, layout));
            door.record(block, layout.size(), usable);
        }
        block
    }
}

impl<A: GlobalAlloc + UsableSize + 'static> Dmd<A> {
    /// As [`new`](Self::new), for an allocator that tells the usable size of its blocks.
    pub const fn with_usable_size(allocator: A) -> Self {
        Self { allocator, options: None, usable_size: Some(A::usable_size) }
    }
}

// SAFETY: every call is forwarded; recording neither allocates through this allocator nor unwinds.
unsafe impl<A: GlobalAlloc + 'static> GlobalAlloc for Dmd<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if door::is_off() {
            // SAFETY: a layout whose size is not 0: the caller of `alloc` passes it.
            return unsafe { self.allocator.alloc(layout) };
        }
        // SAFETY: a layout whose size is not 0: the caller of `alloc` passes it.
        unsafe { self.alloc_recorded(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if door::is_off() {
            // SAFETY: a layout whose size is not 0: the caller of `alloc` passes it.
            return unsafe { self.allocator.alloc_zeroed(layout) };
        }
        // SAFETY: a layout whose size is not 0: the caller of `alloc` passes it.
        unsafe { self.alloc_zeroed_recorded(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if door::is_off() {
            // SAFETY: a live block of `self.allocator` with its layout: the caller of `dealloc` passes them.
            return unsafe { self.allocator.dealloc(block, layout) };
        }
        // SAFETY: a live block of `self.allocator` with its layout: the caller of `dealloc` passes them.
        unsafe { self.dealloc_recorded(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if door::is_off() {
            // SAFETY: a live block with its layout, and a size that is not 0: `realloc`'s caller passes them.
            return unsafe { self.allocator.realloc(block, layout, size) };
        }
        // SAFETY: a live block with its layout, and a size that is not 0: `realloc`'s caller passes them.
        unsafe { self.realloc_recorded(block, layout, size) }
    }
}

/// What happens where something records, or where nobody has looked yet. Out of line, so that a program in
/// which it never does pays for a look at a flag and nothing else.
///
/// The promises are those of [`GlobalAlloc`].
impl<A: GlobalAlloc + 'static> Dmd<A> {
    #[cold]
    #[inline(never)]
    unsafe fn alloc_recorded(&self, layout: Layout) -> *mut u8 {
        self.new_block(layout, |allocator| {
            // SAFETY: a layout whose size is not 0: the caller of `alloc` passes it.
            unsafe { allocator.alloc(layout) }
        })
    }

    #[cold]
    #[inline(never)]
    unsafe fn alloc_zeroed_recorded(&self, layout: Layout) -> *mut u8 {
        let inside = door::current(&self.options).is_some_and(Door::is_ours_and_inside);
        if inside {
            let block = internal_alloc::alloc(layout);
            if !block.is_null() {
                // SAFETY: a fresh block of this size.
                unsafe { block.write_bytes(0, layout.size()) };
                return block;
            }
        }
        self.new_block(layout, |allocator| {
            // SAFETY: a layout whose size is not 0: the caller of `alloc` passes it.
            unsafe { allocator.alloc_zeroed(layout) }
        })
    }

    #[cold]
    #[inline(never)]
    unsafe fn dealloc_recorded(&self, block: *mut u8, layout: Layout) {
        let Some(door) = door::current(&self.options) else {
            // SAFETY: a live block of `self.allocator` with its layout: the caller of `dealloc` passes them.
            return unsafe { self.allocator.dealloc(block, layout) };
        };
        if internal_alloc::owns(block) {
            // SAFETY: the block is of that heap, and the layout the caller's.
            return unsafe { internal_alloc::dealloc(block, layout) };
        }
        door.forget(block);
        // SAFETY: a live block of `self.allocator` with its layout: the caller of `dealloc` passes them.
        door.guarded(|| unsafe { self.allocator.dealloc(block, layout) });
    }

    #[cold]
    #[inline(never)]
    unsafe fn realloc_recorded(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(door) = door::current(&self.options) else {
            // SAFETY: a live block with its layout, and a size that is not 0: `realloc`'s caller passes them.
            return unsafe { self.allocator.realloc(block, layout, size) };
        };
        // SAFETY: the caller promises that the size rounded up to the alignment fits.
        let new_layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if internal_alloc::owns(block) {
            // SAFETY: a live block of `internal_alloc` with its layout, and the size that is asked for is not 0.
            return unsafe { self.move_internal(block, layout, new_layout) };
        }
        let begun = door.begin_move(block);
        // SAFETY: a live block with its layout, and a size that is not 0: `realloc`'s caller passes them.
        let moved = door.guarded(|| unsafe { self.allocator.realloc(block, layout, size) });
        if moved.is_null() {
            door.roll_back_move(&begun);
        } else {
            door.commit_move(&begun);
            let usable = door.guarded(|| self.usable(moved, new_layout));
            door.record(moved, size, usable);
        }
        moved
    }

    /// # Safety
    ///
    /// As for `realloc`, of a block of [`internal_alloc`].
    #[cold]
    unsafe fn move_internal(&self, block: *mut u8, layout: Layout, new_layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises a size that is not 0.
        let moved = unsafe { self.alloc(new_layout) };
        if !moved.is_null() {
            let bytes = layout.size().min(new_layout.size());
            // SAFETY: both have so many bytes, and one was just made.
            unsafe { moved.copy_from_nonoverlapping(block, bytes) };
            // SAFETY: a block of `internal_alloc` with its layout, which the caller passes and uses no more.
            unsafe { internal_alloc::dealloc(block, layout) };
        }
        moved
    }
}

// SAFETY: every block is the inner allocator's, but for the engine's own, of which nobody else knows.
unsafe impl<A: UsableSize> UsableSize for Dmd<A> {
    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        if internal_alloc::owns(block) {
            return layout.size();
        }
        // SAFETY: a live block of `self.allocator` with its layout: the caller of `usable_size` passes them.
        unsafe { self.allocator.usable_size(block, layout) }
    }

    fn statistics(&self) -> AllocatorStatistics {
        self.allocator.statistics()
    }

    fn purge(&self) {
        self.allocator.purge();
    }
}

/// A door is shared by all threads.
const _: fn() = || {
    fn is_sync<T: Sync>() {}
    is_sync::<Door>();
};
