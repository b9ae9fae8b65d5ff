//! The reference of tests: an allocator that counts the memory of each thread. Each test file beside this one runs
//! under one global allocator.

#![allow(unsafe_code, reason = "an allocator")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;

use memory_reporter::allocator::{CUsableSize, UsableSize};

/// The C library's allocator. It counts the blocks of each thread.
#[derive(Debug)]
pub struct Counting;

/// Like [`Counting`], over any allocator.
#[derive(Debug)]
pub struct CountingOver<A>(pub A);

/// The memory that a thread has allocated and not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The requested bytes.
    pub asked: isize,
    /// The usable bytes, including slop.
    pub usable: isize,
    /// The number of blocks.
    pub blocks: isize,
}

std::thread_local! {
    static HELD: Cell<Held> = const { Cell::new(Held { asked: 0, usable: 0, blocks: 0 }) };
    /// The highest number of requested bytes since `peak` last reset it.
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(allocator: &impl UsableSize, pointer: *mut u8, layout: Layout, sign: isize) {
    if pointer.is_null() {
        return;
    }
    // SAFETY: all callers pass a live block of `allocator` and its layout.
    let usable = unsafe { allocator.usable_size(pointer, layout) };
    let held = HELD.get();
    HELD.set(Held {
        asked: held.asked + sign * layout.size() as isize,
        usable: held.usable + sign * usable as isize,
        blocks: held.blocks + sign,
    });
    PEAK.set(PEAK.get().max(HELD.get().asked));
}

// SAFETY: every call is forwarded to `System`, and counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees that the layout's size is not 0.
        let pointer = unsafe { System.alloc(layout) };
        count(&System, pointer, layout, 1);
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(&System, pointer, layout, -1);
        // SAFETY: the caller passes a live block of `alloc`, which got it from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) };
    }
}

// SAFETY: `alloc` gets its blocks from `System`, so `System` returns their sizes.
unsafe impl UsableSize for Counting {
    unsafe fn usable_size(&self, pointer: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller passes a live block of `alloc`, which got it from `System` with this layout.
        unsafe { System.usable_size(pointer, layout) }
    }

    fn c_function(&self) -> Option<CUsableSize> {
        System.c_function()
    }
}

// SAFETY: every call is forwarded to `A`, and counting does not allocate.
unsafe impl<A: GlobalAlloc + UsableSize> GlobalAlloc for CountingOver<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees that the layout's size is not 0.
        let pointer = unsafe { self.0.alloc(layout) };
        count(&self.0, pointer, layout, 1);
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(&self.0, pointer, layout, -1);
        // SAFETY: the caller passes a live block of `alloc`, which got it from `A` with this layout.
        unsafe { self.0.dealloc(pointer, layout) };
    }
}

// SAFETY: `alloc` gets its blocks from `A`, so `A` returns their sizes.
unsafe impl<A: GlobalAlloc + UsableSize> UsableSize for CountingOver<A> {
    unsafe fn usable_size(&self, pointer: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller passes a live block of `alloc`, which got it from `A` with this layout.
        unsafe { self.0.usable_size(pointer, layout) }
    }
}

/// Makes a value. Returns it with its memory: the memory that this thread allocated in the call and did not free.
pub fn grown<T>(make: impl FnOnce() -> T) -> (T, Held) {
    let before = HELD.get();
    let value = make();
    let after = HELD.get();
    let held = Held {
        asked: after.asked - before.asked,
        usable: after.usable - before.usable,
        blocks: after.blocks - before.blocks,
    };
    (value, held)
}

/// Makes a value. Returns it with the peak of this thread's bytes during the call, minus the bytes before the call.
pub fn peak<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get().asked;
    PEAK.set(before);
    let value = make();
    (value, (PEAK.get() - before) as usize)
}

/// A small random generator (xorshift). Its numbers are the same in every run.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator; the same seed produces the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }
}
