//! Programs whose allocator is linked statically, without the wrapper. The program counts its own calls of the
//! allocator, so the test knows what `libdmd.so` must have recorded between two dumps. Usage, with `DMD` and
//! `LD_PRELOAD`: `linked_* FIRST SECOND`. Prints the allocations, frees, reallocations, and the change of the live
//! bytes.

#![allow(clippy::mem_forget, reason = "blocks stay live")]
#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, CString, c_char, c_int};
use std::hint::black_box;
use std::mem::forget;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

/// Counts the calls of an allocator.
pub(crate) struct Counting<A>(pub(crate) A);

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static FREES: AtomicUsize = AtomicUsize::new(0);
static REALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

fn begin(block: *mut u8, bytes: usize) -> *mut u8 {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed);
    block
}

fn end(bytes: usize) {
    FREES.fetch_add(1, Ordering::Relaxed);
    LIVE_BYTES.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: each call is forwarded to the allocator.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller passes a layout whose size is not 0.
        begin(unsafe { self.0.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller passes a layout whose size is not 0.
        begin(unsafe { self.0.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        end(layout.size());
        // SAFETY: the caller passes a live block with its layout.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        REALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(bytes.wrapping_sub(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller passes a live block with its layout, and a size that is not 0.
        unsafe { self.0.realloc(block, layout, bytes) }
    }
}

/// 300 blocks of 123 bytes stay, and 300 are freed.
#[inline(never)]
fn keep_half() {
    let mut blocks: Vec<Box<[u8; 123]>> = Vec::new();
    for index in 0..600_u32 {
        blocks.push(Box::new([index as u8; 123]));
        if index % 2 == 1 {
            drop(black_box(blocks.swap_remove(0)));
        }
    }
    forget(blocks);
}

/// A vector that grows by `realloc`, and shrinks to 7,000 bytes.
#[inline(never)]
fn grow() {
    let mut grown: Vec<u8> = Vec::new();
    for index in 0..9_000_u32 {
        grown.push(index as u8);
    }
    grown.truncate(7_000);
    grown.shrink_to_fit();
    forget(black_box(grown));
}

#[repr(align(256))]
struct Aligned {
    _bytes: [u8; 512],
}

/// Zeroed and aligned blocks.
#[inline(never)]
fn other_kinds() {
    forget(black_box(vec![0_u8; 54_321]));
    for _ in 0..40 {
        forget(black_box(Box::new(Aligned { _bytes: [1; 512] })));
        drop(black_box(Box::new(Aligned { _bytes: [2; 512] })));
    }
}

fn work() {
    keep_half();
    grow();
    other_kinds();
}

/// Calls `DMDDump` of `libdmd.so`. The program allocates nothing for it.
fn dump(file: &CStr) {
    // SAFETY: the name ends in 0.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"DMDDump".as_ptr()) };
    assert!(!function.is_null(), "libdmd.so is preloaded");
    // SAFETY: `dmd.h` declares the function with this type.
    let function: unsafe extern "C" fn(*const c_char) -> c_int = unsafe { std::mem::transmute(function) };
    // SAFETY: the name ends in 0.
    assert_eq!(unsafe { function(file.as_ptr()) }, 0);
}

pub(crate) fn run() {
    let files: Vec<CString> =
        std::env::args().skip(1).map(|file| CString::new(file).expect("a name without 0")).collect();
    // The C library allocates when a thread starts or ends. So all threads start before the first dump, and end after
    // the second dump.
    let barrier = Arc::new(Barrier::new(3));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let barrier = barrier.clone();
            thread::spawn(move || {
                barrier.wait();
                barrier.wait();
                work();
                barrier.wait();
                barrier.wait();
            })
        })
        .collect();
    work();
    let counts =
        || [&ALLOCATIONS, &FREES, &REALLOCATIONS, &LIVE_BYTES].map(|count| count.load(Ordering::Relaxed));
    // Wait until all threads have started.
    barrier.wait();
    dump(&files[0]);
    let before = counts();
    barrier.wait();
    work();
    barrier.wait();
    let after = counts();
    dump(&files[1]);
    barrier.wait();
    for thread in threads {
        thread.join().expect("it does not panic");
    }
    let [allocations, frees, reallocations, bytes] = [0, 1, 2, 3].map(|index| after[index] - before[index]);
    println!("{allocations} {frees} {reallocations} {bytes}");
}
