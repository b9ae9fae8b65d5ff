//! Arenas whose chunks are used from the start to the end. Usage: `DMD=--mode=scan typed_heap_upward DUMP`. The program
//! writes the dump and prints a line, and ends when its standard input ends.

#![allow(clippy::print_stdout, reason = "the test reads it")]
#![allow(dead_code, reason = "only the types and the blocks count")]

use std::alloc::System;
use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::io::Read as _;
use std::mem::MaybeUninit;

#[global_allocator]
static GLOBAL: dmd::Dmd<System> = dmd::Dmd::new(System);

/// 25 values, in chunks for 10 and 20.
struct Leaf([u64; 3]);

/// As in the arenas of rustc: the arena itself has the end of the used part of its last chunk.
#[derive(Default)]
struct Upward {
    chunks: RefCell<Vec<Box<[MaybeUninit<u8>]>>>,
    free: Cell<usize>,
    end: Cell<usize>,
}

struct Node<'a> {
    number: u64,
    next: Option<&'a Node<'a>>,
    name: &'a str,
}

impl Upward {
    fn alloc<T>(&self, value: T) -> &T {
        assert!(align_of::<T>() <= 8, "each chunk starts at a multiple of 8");
        if self.free.get() + size_of::<T>() > self.end.get() {
            self.grow();
        }
        let place = self.free.replace(self.free.get() + size_of::<T>());
        let place = std::ptr::with_exposed_provenance_mut::<T>(place);
        // SAFETY: the place has the size and the alignment of a `T`, belongs to a chunk that lives as long as the
        // arena, and no other value has it.
        unsafe { place.write(value) };
        // SAFETY: it is initialized, and nobody has a mutable reference to it.
        unsafe { &*place }
    }

    #[inline(never)]
    fn grow(&self) {
        let mut chunk = Box::new_uninit_slice(4096);
        let start = chunk.as_mut_ptr().expose_provenance();
        self.free.set(start);
        self.end.set(start + chunk.len());
        self.chunks.borrow_mut().push(chunk);
    }
}

struct Parsed<'a> {
    last: Option<&'a Node<'a>>,
}

fn main() {
    let dump = std::env::args_os().nth(1).expect("a file");
    let leaves = Box::leak(Box::new(typed_arena::Arena::with_capacity(10)));
    let first: Vec<&Leaf> = (0..25).map(|number| &*leaves.alloc(Leaf([number; 3]))).collect();
    let upward: &Upward = Box::leak(Box::new(Upward::default()));
    let mut list = None;
    // A chunk has room for 128 values.
    for number in 0..130 {
        list = Some(upward.alloc(Node { number, next: list, name: "static" }));
    }
    let parsed = Box::new(Parsed { last: list });
    dmd::dump(&dump).expect("a dump");
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("standard input");
    black_box((first, parsed, upward));
}
