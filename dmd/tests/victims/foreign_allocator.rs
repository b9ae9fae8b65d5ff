//! A program with an allocator that a preloaded DMD does not see. Usage: `foreign_allocator REPORT DUMP`, as for
//! `faults`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use memory_reporter::{CollectOptions, collect_reports, file};

/// The size of the static memory. This memory does not come from an allocator.
const ROOM: usize = 16 << 20;
static mut ARENA: [u128; ROOM / 16] = [0; ROOM / 16];
static USED: AtomicUsize = AtomicUsize::new(0);

/// An allocator that takes one block after another from a static, and never frees a block.
struct Bump;

#[global_allocator]
static ALLOCATOR: Bump = Bump;

// SAFETY: each block is a separate part of the static, aligned to 16 bytes or more.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > 16 {
            // SAFETY: the caller keeps the contract, which is the same for both allocators.
            return unsafe { System.alloc(layout) };
        }
        let start = USED.fetch_add(layout.size().next_multiple_of(16), Ordering::Relaxed);
        assert!(start + layout.size() <= ROOM, "the arena is large enough");
        (&raw mut ARENA).cast::<u8>().wrapping_add(start)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/pages", Heap, &PAGES, "Memory used by pages.");

fn main() {
    let [report, dump] = [1, 2].map(|nth| std::env::args_os().nth(nth).expect("two files"));
    *PAGES.lock().expect("unpoisoned") = vec![vec![0; 10_000]; 100];
    file::write(report, &collect_reports(&CollectOptions::new())).expect("writable");
    dmd::report_and_dump(dump).expect("writable");
}
