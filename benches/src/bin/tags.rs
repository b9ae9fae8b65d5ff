//! Measures the cost of a tag: `cargo run --release -p benches --bin tags`.
//!
//! Each line is the time of an allocation and its deallocation, in nanoseconds. The lines are: the system's allocator
//! alone; the declared allocator before the process's first tag, after this tag, and under a tag; and a wrapper that
//! writes a header of 16 bytes before each block. Such a header is another way to store a block's tag. `large` runs
//! after the first tag, so its second and third lines measure the same case.
//!
//! Rounds alternate, and each figure is the median of the rounds. `small` allocates 64 blocks of 16 to 128 bytes and
//! frees them in another order. `large` does the same with 1,000,000 blocks, which do not fit into the caches.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]
#![allow(unsafe_code, reason = "calls allocators")]

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use std::alloc::System;
use std::time::Instant;

use memory_reporter::__private::CountingAllocator;
use memory_reporter::tags::Tag;

const ROUNDS: usize = 25;

static DECLARED: CountingAllocator<System> = CountingAllocator::new(System);
static HEADER: Header = Header;

/// The declared allocator with a header before each block.
struct Header;

fn with_header(layout: Layout) -> (Layout, usize) {
    let align = layout.align().max(16);
    // SAFETY: the sizes and alignments of this bench are small.
    (unsafe { Layout::from_size_align_unchecked(layout.size() + align, align) }, align)
}

// SAFETY: every call is forwarded to `DECLARED`, with room for a header before each block.
unsafe impl GlobalAlloc for Header {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (whole, offset) = with_header(layout);
        // SAFETY: the size of `whole` is not 0.
        let start = unsafe { DECLARED.alloc(whole) };
        if start.is_null() {
            return start;
        }
        // SAFETY: the block has room for the header.
        unsafe { start.cast::<u64>().write(7) };
        // SAFETY: the block has `offset` bytes before the value.
        unsafe { start.add(offset) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let (whole, offset) = with_header(layout);
        // SAFETY: `alloc` has put the value `offset` bytes after the start.
        let start = unsafe { block.sub(offset) };
        // SAFETY: `alloc` has written the header.
        black_box(unsafe { start.cast::<u64>().read() });
        // SAFETY: `alloc` got the block with this layout.
        unsafe { DECLARED.dealloc(start, whole) };
    }
}

/// Nanoseconds for each block that the allocator allocates and frees.
fn time(allocator: &dyn GlobalAlloc, live: usize) -> f64 {
    let rounds = if live < 1000 { 20_000 } else { 1 };
    let layout = |i: usize| Layout::from_size_align(16 + i * 8 % 113, 8).expect("a small layout");
    let mut blocks = vec![core::ptr::null_mut::<u8>(); live];
    let start = Instant::now();
    for _ in 0..rounds {
        for (i, block) in blocks.iter_mut().enumerate() {
            // SAFETY: the size is not 0.
            *block = unsafe { allocator.alloc(layout(i)) };
        }
        // The stride has no common factor with the number of blocks.
        let mut i = 0;
        for _ in 0..live {
            i = (i + 40_503) % live;
            // SAFETY: each block is live and has this layout. The stride reaches each place once.
            unsafe { allocator.dealloc(blocks[i], layout(i)) };
        }
    }
    start.elapsed().as_nanos() as f64 / (rounds * live) as f64
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    for (name, live) in [("small", 64), ("large", 1_000_000)] {
        let mut figures: [Vec<f64>; 5] = Default::default();
        let never_tagged = name == "small";
        for _ in 0..ROUNDS {
            figures[0].push(time(&System, live));
            figures[1].push(time(&DECLARED, live));
        }
        let tag = Tag::new("explicit/bench");
        tag.run(|| ());
        for _ in 0..ROUNDS {
            figures[2].push(time(&DECLARED, live));
            figures[3].push(tag.run(|| time(&DECLARED, live)));
            figures[4].push(time(&HEADER, live));
        }
        let names = [
            "the system's allocator",
            if never_tagged { "declared, before the first tag" } else { "declared" },
            "declared, after the first tag",
            "declared, under a tag",
            "declared, with a header",
        ];
        println!("{name}: {live} blocks");
        for (name, figures) in names.iter().zip(figures) {
            println!("{name:>32}: {:6.2} ns", median(figures));
        }
    }
}
