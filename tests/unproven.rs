//! A declaration of an allocator that is not the global allocator: the library never asks this allocator, and computes
//! all sizes.

#![allow(unsafe_code, reason = "an allocator")]

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;
use std::rc::Rc;

use memory_reporter::__private::{CountingAllocator, DeclaredAllocator, inventory};
use memory_reporter::{
    MallocSizeOfOps,
    allocator::{UsableSize, declared as declared_allocator},
    amounts, computed_size_of, malloc_size_of,
    measure::size_summary,
};
use tests::{Counting, grown};

#[global_allocator]
static GLOBAL: Counting = Counting;

/// An allocator that gives wrong sizes.
struct Other;

// SAFETY: every call is forwarded to `System`.
unsafe impl GlobalAlloc for Other {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees that the layout's size is not 0.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller passes a live block of `alloc`, which got it from `System` with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

// SAFETY: the size is wrong, but the library must never ask for it. The test checks this.
unsafe impl UsableSize for Other {
    unsafe fn usable_size(&self, _: *const u8, _: Layout) -> usize {
        1 << 40
    }
}

/// Declared like in `global_allocator!`, but without the attribute.
static OTHER: CountingAllocator<Other> = CountingAllocator::new(Other);

unsafe fn usable_size(block: *const u8, layout: Layout) -> usize {
    // SAFETY: `usable_size` of `Other` has no precondition, since it does not read the block.
    unsafe { OTHER.usable_size(block, layout) }
}

inventory::submit! {
    // SAFETY: `OTHER` is not the global allocator, but its `usable_size` accepts any block.
    unsafe { DeclaredAllocator::new(&OTHER, usable_size) }
}

#[test]
fn an_allocator_that_no_block_passes_through_is_not_asked() {
    assert!(declared_allocator().is_none());
    assert!(MallocSizeOfOps::measured().is_none());
    assert_eq!(amounts::heap_allocated(), None);
    let (words, held) = grown(|| (vec![String::from("word"); 100], Rc::new(7_u64)));
    assert_eq!(
        (computed_size_of(&words), malloc_size_of(&words)),
        (held.asked as usize, held.asked as usize)
    );
    assert_eq!(size_summary(&words).usable, held.asked as usize);
}

#[test]
fn blocks_that_pass_through_it_otherwise_prove_nothing() {
    let layout = Layout::new::<u64>();
    // SAFETY: the size of `layout` is not 0.
    let block = unsafe { OTHER.alloc(layout) };
    assert!(declared_allocator().is_none());
    // SAFETY: the block is live: `OTHER` allocated it above with this layout.
    unsafe { OTHER.dealloc(block, layout) };
    assert!(declared_allocator().is_none());
}
