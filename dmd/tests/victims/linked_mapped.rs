//! See `linked/work.rs`. The allocator has no functions that DMD knows: it makes a separate mapping for each block.

#[path = "linked/work.rs"]
mod work;

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;

struct Mapped;

// SAFETY: a mapping has at least the layout's size, the alignment of a page, and zeros.
unsafe impl GlobalAlloc for Mapped {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new mappings overlap with no others.
        let block = unsafe { libc::mmap(null_mut(), layout.size(), protection, flags, -1, 0) };
        if block == libc::MAP_FAILED { null_mut() } else { block.cast() }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `alloc` made the mapping with this size.
        unsafe { libc::munmap(block.cast(), layout.size()) };
    }
}

#[global_allocator]
static ALLOCATOR: work::Counting<Mapped> = work::Counting(Mapped);

fn main() {
    work::run();
}
