//! A program that computes its own peak: a counting allocator around DMD checks for a new peak after every event.
//! Usage: `peak STORY FILE`. The program writes a dump into the file and prints `peak BYTES`. Then it prints `STACK
//! BYTES BLOCKS` for each function that had its own blocks at the peak.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use memory_reporter::allocator::UsableSize as _;

static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

struct Counting(dmd::Dmd<System>);

fn count(by: i64) {
    let live = LIVE.fetch_add(by, Ordering::SeqCst) + by;
    PEAK.fetch_max(live, Ordering::SeqCst);
}

// SAFETY: every call is forwarded to the wrapped allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller of `alloc` keeps the same contract.
        let block = unsafe { self.0.alloc(layout) };
        count(usable(block, layout));
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-usable(block, layout));
        // SAFETY: the caller of `dealloc` keeps the same contract.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let before = usable(block, layout);
        // SAFETY: the caller of `realloc` keeps the same contract.
        let moved = unsafe { self.0.realloc(block, layout, size) };
        count(usable(moved, layout) - before);
        moved
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(dmd::Dmd::new(System));

type Blocks = Vec<Box<[u8]>>;

/// Allocates small blocks. Their stacks contain this function.
#[inline(never)]
fn small(number: usize) -> Blocks {
    let mut blocks = Vec::with_capacity(number);
    for _ in 0..number {
        blocks.push(vec![1u8; 100].into_boxed_slice());
    }
    black_box(blocks)
}

/// Allocates large blocks. Their stacks contain this function.
#[inline(never)]
fn large(number: usize) -> Blocks {
    let mut blocks = Vec::with_capacity(number);
    for _ in 0..number {
        blocks.push(vec![1u8; 70_000].into_boxed_slice());
    }
    black_box(blocks)
}

/// Moves one buffer repeatedly.
#[inline(never)]
fn moved(bytes: usize) -> Vec<u8> {
    let mut buffer: Vec<u8> = Vec::new();
    while buffer.len() < bytes {
        buffer.extend_from_slice(&[7; 997]);
    }
    black_box(buffer)
}

/// Allocates a small block, with another stack for each `path` of 12 bits.
#[inline(never)]
fn by_path(path: usize, depth: usize) -> Box<[u8]> {
    let next =
        if depth == 0 { vec![1u8; 100].into_boxed_slice() } else { TURNS[path & 1](path >> 1, depth - 1) };
    black_box(next)
}

#[inline(never)]
fn by_other_path(path: usize, depth: usize) -> Box<[u8]> {
    black_box(by_path(black_box(path), depth))
}

type Turn = fn(usize, usize) -> Box<[u8]>;

static TURNS: [Turn; 2] = [by_path, by_other_path];

/// The usable bytes of a live block.
fn usable(block: *const u8, layout: Layout) -> i64 {
    // SAFETY: all callers pass a live block of this allocator with its layout.
    unsafe { ALLOCATOR.0.usable_size(block, layout) as i64 }
}

/// Prints the blocks of each function at the peak: `small`, `large`.
fn tell(small: usize, large: usize) {
    for (name, number, size) in [("small", small, &SMALL), ("large", large, &LARGE)] {
        println!("{name} {} {number}", number as i64 * size.load(Ordering::Relaxed));
    }
}

/// The usable bytes of small and of large blocks.
static SMALL: AtomicI64 = AtomicI64::new(0);
static LARGE: AtomicI64 = AtomicI64::new(0);

/// Measures a block of each size, long before the peak.
fn measure() {
    for (requested, size) in [(100, &SMALL), (70_000, &LARGE)] {
        let block = vec![1u8; requested].into_boxed_slice();
        let layout = Layout::for_value::<[u8]>(&block);
        size.store(usable(black_box(&block).as_ptr(), layout), Ordering::Relaxed);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (story, file) = (arguments.next().expect("a story"), arguments.next().expect("a file"));
    measure();
    let mut kept = Vec::new();
    match story.as_str() {
        "at-end" => {
            kept.push(small(20_000));
            kept.push(large(50));
            tell(20_000, 50);
        }
        "grow-shrink-grow" => {
            let first = (small(60_000), large(100));
            drop(first);
            kept.push(small(10_000));
            kept.push(large(60));
            tell(60_000, 100);
        }
        "half-freed" => {
            let mut blocks = small(50_000);
            let larger = large(40);
            blocks.truncate(10_000);
            drop(larger);
            // Allocations and frees below the peak.
            for _ in 0..200 {
                drop(small(100));
            }
            kept.push(blocks);
            tell(50_000, 40);
        }
        "many-stacks" => {
            let pick = |n: usize| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let mut blocks: Blocks = (0..50_000).map(|n| by_path(pick(n), 12)).collect();
            for n in 0..30_000 {
                blocks.swap_remove(pick(n) % blocks.len());
            }
            // Allocations and frees below the peak.
            for n in 0..100_000 {
                let at = pick(n) % blocks.len();
                blocks.swap_remove(at);
                blocks.push(by_path(pick(n), 12));
            }
            kept.push(blocks);
            tell(50_000, 0);
        }
        "moves" => {
            let buffer = moved(9_000_000);
            let blocks = large(30);
            drop(black_box(buffer));
            kept.push(blocks);
            drop(moved(1_000_000));
            tell(0, 30);
        }
        "threads" => {
            let all = thread::scope(|scope| {
                let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| (small(10_000), large(10)))).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
            });
            // Other threads free the blocks that these threads allocated.
            thread::scope(|scope| {
                for blocks in all {
                    scope.spawn(move || {
                        drop(blocks);
                        for _ in 0..50 {
                            drop(small(100));
                        }
                    });
                }
            });
            tell(60_000, 60);
        }
        "fork" => {
            let blocks = (small(40_000), large(30));
            // SAFETY: the child only frees, allocates, writes a dump and ends.
            let child = unsafe { libc::fork() };
            if child != 0 {
                let mut status = 0;
                // SAFETY: `status` is a place for the status of this child.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                std::process::exit(status);
            }
            drop(blocks);
            kept.push(small(100));
            tell(40_000, 30);
        }
        other => panic!("no story {other}"),
    }
    println!("peak {}", PEAK.load(Ordering::SeqCst));
    dmd::dump(file).expect("recording");
    drop(kept);
}
