//! An allocator that walks the stack at each allocation, like the hooks. It ends the process if the walker itself
//! allocates or changes errno.

use dmd_unwind::{WalkEnd, capture_here};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[derive(Debug)]
pub(crate) struct Walking;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

static WALKED: AtomicUsize = AtomicUsize::new(0);
static LOST: AtomicUsize = AtomicUsize::new(0);

fn walk() {
    if INSIDE.try_with(|inside| inside.replace(true)) != Ok(false) {
        let text = "the walker allocated\n";
        // SAFETY: `text` is valid for reads of its length.
        unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
        std::process::abort();
    }
    // SAFETY: the function has no precondition.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the C library gives each thread a valid pointer to its own errno.
    unsafe { *errno = 12345 };
    let mut out = [0; 16];
    let (len, end) = black_box(capture_here(&mut out));
    // SAFETY: as above.
    if unsafe { *errno } != 12345 {
        std::process::abort();
    }
    WALKED.fetch_add(1, Relaxed);
    LOST.fetch_add(usize::from(len == 0 || end == WalkEnd::Lost), Relaxed);
    _ = INSIDE.try_with(|inside| inside.set(false));
}

// SAFETY: every call is forwarded to the system's allocator. `walk` does not touch the blocks.
unsafe impl GlobalAlloc for Walking {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        walk();
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, and `System` requires the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, and `System` requires the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[test]
fn each_allocation_of_the_tests_is_walked() {
    let before = WALKED.load(Relaxed);
    let texts: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    assert_eq!(texts.len(), 1000);
    assert!(WALKED.load(Relaxed) - before > 1000);
    assert_eq!(LOST.load(Relaxed), 0);
}
