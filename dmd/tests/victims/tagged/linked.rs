//! An allocator that the program links, with its function for usable sizes.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use memory_reporter::allocator::UsableSize;

pub(crate) struct Linked<A>(pub(crate) A, pub(crate) unsafe extern "C" fn(*const c_void) -> usize);

// SAFETY: each call is forwarded to the allocator.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Linked<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller passes a layout whose size is not 0.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller passes a layout whose size is not 0.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller passes a live block with its layout.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller passes a live block with its layout, and a size that is not 0.
        unsafe { self.0.realloc(block, layout, bytes) }
    }
}

// SAFETY: the function belongs to the allocator.
unsafe impl<A: GlobalAlloc> UsableSize for Linked<A> {
    unsafe fn usable_size(&self, block: *const u8, _: Layout) -> usize {
        // SAFETY: the caller passes a live block of this allocator.
        unsafe { (self.1)(block.cast()) }
    }
}
