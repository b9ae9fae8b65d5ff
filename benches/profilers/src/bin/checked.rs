//! Runs the workloads with an allocator that counts blocks, and that takes the stacks of some blocks with the
//! `backtrace` crate. Prints the counts and the stacks. A profiler may be preloaded.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]
#![allow(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

struct Checked;

static NEW: AtomicU64 = AtomicU64::new(0);
static GONE: AtomicU64 = AtomicU64::new(0);
/// The return addresses of each live block that `is_picked` selects, innermost first.
static STACKS: Mutex<BTreeMap<usize, Vec<usize>>> = Mutex::new(BTreeMap::new());

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body`, and ignores the blocks that it allocates.
fn aside(body: impl FnOnce()) {
    INSIDE.set(true);
    body();
    INSIDE.set(false);
}

/// Selects blocks by their addresses, so that `begun` and `ended` select the same blocks.
fn is_picked(block: *mut u8) -> bool {
    (block.addr() >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56 == 0
}

/// Counts a new block. The function is inlined, so that its stack differs only in the innermost frame from the stack of
/// the call to the system's allocator.
#[inline(always)]
fn begun(block: *mut u8) {
    if INSIDE.get() {
        return;
    }
    NEW.fetch_add(1, Ordering::Relaxed);
    if is_picked(block) {
        aside(|| {
            let mut stack = Vec::with_capacity(64);
            backtrace::trace(|frame| {
                stack.push(frame.ip().addr());
                true
            });
            STACKS.lock().unwrap_or_else(PoisonError::into_inner).insert(block.addr(), stack);
        });
    }
}

#[inline(always)]
fn ended(block: *mut u8) {
    if INSIDE.get() {
        return;
    }
    GONE.fetch_add(1, Ordering::Relaxed);
    if is_picked(block) {
        aside(|| {
            STACKS.lock().unwrap_or_else(PoisonError::into_inner).remove(&block.addr());
        });
    }
}

// SAFETY: every call is forwarded to `System`; `begun` and `ended` do not touch the block.
unsafe impl GlobalAlloc for Checked {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees that the layout's size is not 0.
        let block = unsafe { System.alloc(layout) };
        begun(block);
        block
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees that the layout's size is not 0.
        let block = unsafe { System.alloc_zeroed(layout) };
        begun(block);
        block
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ended(block);
        // SAFETY: the caller passes a live block, which `System` allocated with this layout, and a size that is not 0.
        let block = unsafe { System.realloc(block, layout, size) };
        begun(block);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ended(block);
        // SAFETY: the caller passes a live block, which `System` allocated with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Checked = Checked;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    profilers::run(print)
}

fn print() {
    let (new, gone) = (NEW.load(Ordering::Relaxed), GONE.load(Ordering::Relaxed));
    println!("new={new} live={}", new - gone);
    INSIDE.set(true);
    for (block, stack) in STACKS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let stack: Vec<String> = stack.iter().map(|pc| format!("{pc:x}")).collect();
        println!("stack={block:x}:{}", stack.join(","));
    }
}
