//! An allocator that puts a header before each block. If a crate passed such a block to the C library's
//! `malloc_usable_size`, the function would read garbage or crash.

#![allow(unsafe_code, reason = "an allocator")]

#[path = "statics.rs"]
mod statics;
#[path = "tags.rs"]
#[allow(unsafe_code, reason = "calls the allocator")]
mod tags;

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;
use std::rc::Rc;

use memory_reporter::{allocator::UsableSize, amounts, computed_size_of, malloc_size_of};

struct Header;

fn with_header(layout: Layout) -> (Layout, usize) {
    let (whole, offset) = Layout::new::<usize>().extend(layout).expect("a test's layout");
    (whole.pad_to_align(), offset)
}

// SAFETY: every call is forwarded to `System`, with room for a header that contains the size.
unsafe impl GlobalAlloc for Header {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (whole, offset) = with_header(layout);
        // SAFETY: `whole` has room for the header, so its size is not 0.
        let start = unsafe { System.alloc(whole) };
        if start.is_null() {
            return start;
        }
        // SAFETY: `offset` is inside the block, which has the size of `whole`.
        let pointer = unsafe { start.add(offset) };
        // SAFETY: `offset` is at least the size of the header, so the result is inside the block.
        let header = unsafe { pointer.cast::<usize>().sub(1) };
        // SAFETY: the header is part of the new block, and no other code uses the block yet.
        unsafe { header.write_unaligned(layout.size()) };
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let (whole, offset) = with_header(layout);
        // SAFETY: the caller passes a pointer from `alloc`, so the block starts `offset` bytes before the pointer.
        let start = unsafe { pointer.sub(offset) };
        // SAFETY: the caller passes a live block of `alloc`, which wrote its header.
        if unsafe { self.usable_size(pointer, layout) } != layout.size() {
            std::process::abort(); // `alloc` got another layout
        }
        // SAFETY: `alloc` got the block from `System` with the layout `whole`.
        unsafe { System.dealloc(start, whole) };
    }
}

// SAFETY: `usable_size` returns the size that `alloc` wrote into the header, and does not allocate.
unsafe impl UsableSize for Header {
    unsafe fn usable_size(&self, pointer: *const u8, _: Layout) -> usize {
        // SAFETY: the caller passes a live block of `alloc`, and its header is directly before the pointer.
        let header = unsafe { pointer.cast::<usize>().sub(1) };
        // SAFETY: `alloc` wrote the header, and the header lives as long as the block.
        unsafe { header.read_unaligned() }
    }
}

mod declared {
    // A user's item with this name must not replace the attribute in the macro.
    #[allow(unused_imports, reason = "the macro must not use it")]
    use core::prelude::v1::test as global_allocator;

    memory_reporter::global_allocator!(super::Header: super::Header);
}

#[test]
fn sizes_are_those_of_the_header() {
    let values = (vec![String::from("seven b"); 100], Box::new([0_u64; 9]), Rc::new(1_u8));
    assert_eq!(malloc_size_of(&values), computed_size_of(&values));
    assert_eq!(computed_size_of(&values), 100 * 24 + 700 + 72 + 24);
    assert!(amounts::heap_allocated().unwrap() >= 3000);
}
