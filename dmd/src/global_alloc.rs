//! The hook for Rust programs: a wrapper around the global allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::any::TypeId;
use std::alloc::System;

use memory_reporter::allocator::{AllocatorStatistics, UsableSize};

use crate::internal_alloc;
use crate::options::Options;
use crate::recorder::{self, Recorder};

/// An allocator whose blocks DMD records, if `$DMD` asks for it.
///
/// ```
/// use std::alloc::System;
///
/// #[global_allocator]
/// static ALLOCATOR: dmd::Dmd<System> = dmd::Dmd::new(System);
/// # fn main() {}
/// ```
///
/// If `libdmd.so` is preloaded, its engine records each block, and the wrapper does not record it again. On platforms
/// without DMD the wrapper only forwards calls.
///
/// DMD can give the report `heap-allocated` only while it records. To have the report always, declare the wrapper by
/// `memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System))`.
///
/// Sizes are usable bytes if DMD can get them from the allocator: from `System`, from an allocator in a wrapper of
/// [`with_usable_size`](Self::with_usable_size), from jemalloc with the feature `jemalloc07`, and from mimalloc with
/// the feature `mimalloc01`. For other allocators, sizes are requested bytes.
#[derive(Debug)]
pub struct Dmd<A> {
    allocator: A,
    options: Option<Options>,
    usable_size: Option<AskUsableSize<A>>,
}

type AskUsableSize<A> = unsafe fn(&A, *const u8, Layout) -> usize;

impl<A: GlobalAlloc + 'static> Dmd<A> {
    /// Makes a wrapper that records if the environment variable `DMD` is set, with the options in it.
    pub const fn new(allocator: A) -> Self {
        Self { allocator, options: None, usable_size: None }
    }

    /// Makes a wrapper that records only while `about-memory track` requests it from the running program. If the
    /// environment variable `DMD` is set, its options decide, as for [`new`](Self::new).
    ///
    /// While DMD does not record, each allocation costs one additional read of a flag. The program must answer
    /// requests: see `memory_reporter::listen`.
    pub const fn on_request(allocator: A) -> Self {
        let options = Options::new().wait_for_track(true).quiet(true);
        Self { allocator, options: Some(options), usable_size: None }
    }

    /// Makes a wrapper that always records, with these options, and ignores the variable `DMD`: for tests, and for programs
    /// with a [`BlackBox`](crate::BlackBox).
    pub const fn switched_on(allocator: A, options: Options) -> Self {
        Self { allocator, options: Some(options), usable_size: None }
    }

    /// The usable bytes of a live block.
    #[inline(always)]
    fn usable(&self, block: *mut u8, layout: Layout) -> usize {
        if let Some(ask) = self.usable_size {
            // SAFETY: the callers below pass a live block of this allocator with its layout.
            return unsafe { ask(&self.allocator, block, layout) };
        }
        if TypeId::of::<A>() == TypeId::of::<System>() {
            // SAFETY: `A` is `System`, and the callers below pass a live block of it with its layout.
            return unsafe { System.usable_size(block, layout) };
        }
        #[cfg(feature = "jemalloc07")]
        if TypeId::of::<A>() == TypeId::of::<tikv_jemallocator::Jemalloc>() {
            // SAFETY: `A` is jemalloc, and the callers below pass a live block of it with its layout.
            return unsafe { tikv_jemallocator::Jemalloc.usable_size(block, layout) };
        }
        #[cfg(feature = "mimalloc01")]
        if TypeId::of::<A>() == TypeId::of::<mimalloc::MiMalloc>() {
            // SAFETY: `A` is mimalloc, and the callers below pass a live block of it with its layout.
            return unsafe { mimalloc::MiMalloc.usable_size(block, layout) };
        }
        layout.size()
    }

    /// Passes on a block that is not in the sample, or null.
    #[inline(always)]
    fn unrecorded(&self, block: *mut u8, requested: usize) -> *mut u8 {
        if block.is_null() {
            self.failed(requested);
        }
        block
    }

    #[cold]
    #[inline(never)]
    fn failed(&self, requested: usize) {
        if let Some(recorder) = recorder::current(&self.options) {
            recorder.allocation_failed(requested);
        }
    }

    #[inline(always)]
    fn new_block(&self, layout: Layout, allocate: impl Fn(&A) -> *mut u8) -> *mut u8 {
        let Some(recorder) = recorder::current(&self.options) else { return allocate(&self.allocator) };
        if recorder.is_ours_and_inside() {
            let block = internal_alloc::alloc(layout);
            if !block.is_null() {
                return block;
            }
        }
        let block = recorder.guarded(|| allocate(&self.allocator));
        if !block.is_null() {
            let usable = recorder.guarded(|| self.usable(block, layout));
            recorder.record(block, layout.size(), usable);
        } else {
            recorder.allocation_failed(layout.size());
        }
        block
    }
}

impl<A: GlobalAlloc + UsableSize + 'static> Dmd<A> {
    /// Like [`new`](Self::new), for an allocator that returns the usable size of its blocks.
    pub const fn with_usable_size(allocator: A) -> Self {
        Self { allocator, options: None, usable_size: Some(A::usable_size) }
    }
}

// SAFETY: every call is forwarded to `A` or to `internal_alloc`. Recording neither allocates through this allocator
// nor unwinds.
unsafe impl<A: GlobalAlloc + 'static> GlobalAlloc for Dmd<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if recorder::is_off() {
            // SAFETY: the caller of `alloc` passes a layout whose size is not 0.
            return unsafe { self.allocator.alloc(layout) };
        }
        if recorder::passes_over(layout.size()) {
            // SAFETY: as above.
            return self.unrecorded(unsafe { self.allocator.alloc(layout) }, layout.size());
        }
        // SAFETY: the caller of `alloc` passes a layout whose size is not 0.
        unsafe { self.alloc_recorded(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if recorder::is_off() {
            // SAFETY: the caller of `alloc_zeroed` passes a layout whose size is not 0.
            return unsafe { self.allocator.alloc_zeroed(layout) };
        }
        if recorder::passes_over(layout.size()) {
            // SAFETY: as above.
            return self.unrecorded(unsafe { self.allocator.alloc_zeroed(layout) }, layout.size());
        }
        // SAFETY: the caller of `alloc_zeroed` passes a layout whose size is not 0.
        unsafe { self.alloc_zeroed_recorded(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if (recorder::is_off() && !internal_alloc::owns(block)) || recorder::has_no_record(block) {
            // SAFETY: the caller of `dealloc` passes a live block of `self.allocator` with its layout.
            return unsafe { self.allocator.dealloc(block, layout) };
        }
        // SAFETY: the caller of `dealloc` passes a live block of `self.allocator` with its layout.
        unsafe { self.dealloc_recorded(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if recorder::is_off() && !internal_alloc::owns(block) {
            // SAFETY: the caller of `realloc` passes a live block with its layout, and a size that is not 0.
            return unsafe { self.allocator.realloc(block, layout, size) };
        }
        if recorder::has_no_record(block) && recorder::passes_over(size) {
            // SAFETY: as above.
            return self.unrecorded(unsafe { self.allocator.realloc(block, layout, size) }, size);
        }
        // SAFETY: the caller of `realloc` passes a live block with its layout, and a size that is not 0.
        unsafe { self.realloc_recorded(block, layout, size) }
    }
}

/// The path for calls while an engine records, or before a hook has looked for an engine. It is out of line, so that a
/// program without recording pays only for the read of a flag.
///
/// Callers keep the contract of [`GlobalAlloc`].
impl<A: GlobalAlloc + 'static> Dmd<A> {
    #[cold]
    #[inline(never)]
    unsafe fn alloc_recorded(&self, layout: Layout) -> *mut u8 {
        self.new_block(layout, |allocator| {
            // SAFETY: the caller of `alloc` passes a layout whose size is not 0.
            unsafe { allocator.alloc(layout) }
        })
    }

    #[cold]
    #[inline(never)]
    unsafe fn alloc_zeroed_recorded(&self, layout: Layout) -> *mut u8 {
        let inside = recorder::current(&self.options).is_some_and(Recorder::is_ours_and_inside);
        if inside {
            let block = internal_alloc::alloc(layout);
            if !block.is_null() {
                // SAFETY: `internal_alloc` made a fresh block of this size.
                unsafe { block.write_bytes(0, layout.size()) };
                return block;
            }
        }
        self.new_block(layout, |allocator| {
            // SAFETY: the caller of `alloc_zeroed` passes a layout whose size is not 0.
            unsafe { allocator.alloc_zeroed(layout) }
        })
    }

    #[cold]
    #[inline(never)]
    unsafe fn dealloc_recorded(&self, block: *mut u8, layout: Layout) {
        // A block of the engine may outlive the session of tracking in which the engine allocated it.
        if internal_alloc::owns(block) {
            // SAFETY: the caller of `dealloc` passes a live block of `internal_alloc` with its layout.
            return unsafe { internal_alloc::dealloc(block, layout) };
        }
        let Some(recorder) = recorder::current(&self.options) else {
            // SAFETY: the caller of `dealloc` passes a live block of `self.allocator` with its layout.
            return unsafe { self.allocator.dealloc(block, layout) };
        };
        recorder.forget(block);
        // SAFETY: the caller of `dealloc` passes a live block of `self.allocator` with its layout.
        recorder.guarded(|| unsafe { self.allocator.dealloc(block, layout) });
    }

    #[cold]
    #[inline(never)]
    unsafe fn realloc_recorded(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller of `realloc` guarantees that the size, rounded up to the alignment, does not overflow.
        let new_layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if internal_alloc::owns(block) {
            // SAFETY: the caller of `realloc` passes a live block of `internal_alloc` with its layout, and a size that
            // is not 0.
            return unsafe { self.move_internal(block, layout, new_layout) };
        }
        let Some(recorder) = recorder::current(&self.options) else {
            // SAFETY: the caller of `realloc` passes a live block with its layout, and a size that is not 0.
            return unsafe { self.allocator.realloc(block, layout, size) };
        };
        let moving = recorder.begin_move(block);
        // SAFETY: the caller of `realloc` passes a live block with its layout, and a size that is not 0.
        let moved = recorder.guarded(|| unsafe { self.allocator.realloc(block, layout, size) });
        if moved.is_null() {
            recorder.roll_back_move(&moving);
            recorder.allocation_failed(size);
        } else {
            recorder.commit_move(&moving);
            let usable = recorder.guarded(|| self.usable(moved, new_layout));
            recorder.record(moved, size, usable);
        }
        moved
    }

    /// # Safety
    ///
    /// The contract of `realloc`, for a block of [`internal_alloc`].
    #[cold]
    unsafe fn move_internal(&self, block: *mut u8, layout: Layout, new_layout: Layout) -> *mut u8 {
        // SAFETY: the caller of `realloc` passes a size that is not 0.
        let moved = unsafe { self.alloc(new_layout) };
        if !moved.is_null() {
            let bytes = layout.size().min(new_layout.size());
            // SAFETY: both blocks have this many bytes, and `moved` is fresh.
            unsafe { moved.copy_from_nonoverlapping(block, bytes) };
            // SAFETY: the caller of `realloc` passes a live block of `internal_alloc` with its layout, and does not
            // use the block any more.
            unsafe { internal_alloc::dealloc(block, layout) };
        }
        moved
    }
}

// SAFETY: every block comes from the inner allocator, except the engine's own blocks. Only the engine has pointers to
// these, and no measured value contains them.
unsafe impl<A: UsableSize> UsableSize for Dmd<A> {
    #[inline]
    unsafe fn usable_size(&self, block: *const u8, layout: Layout) -> usize {
        if internal_alloc::owns(block) {
            // The engine's block is not in the heap, so `heap-allocated` does not count it.
            return 0;
        }
        // SAFETY: the caller of `usable_size` passes a live block of `self.allocator` with its layout.
        unsafe { self.allocator.usable_size(block, layout) }
    }

    fn statistics(&self) -> AllocatorStatistics {
        self.allocator.statistics()
    }

    fn purge(&self) {
        self.allocator.purge();
    }
}

/// Checks that `Recorder` is `Sync`: all threads share the engine.
const _: fn() = || {
    fn is_sync<T: Sync>() {}
    is_sync::<Recorder>();
};
