//! Arenas whose chunks are used from the start to the end. Usage: `DMD=--mode=scan typed_heap_upward DUMP`. The program
//! writes the dump and prints a line, and ends when its standard input ends.

#![allow(clippy::print_stdout, reason = "the test reads it")]
#![allow(dead_code, reason = "only the types and the blocks count")]

use std::alloc::{Layout, System};
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

/// Each chunk starts with its header. The arena has only a raw pointer to its last chunk.
struct Headed {
    last: Cell<*mut ChunkHeader>,
}

#[repr(C)]
struct ChunkHeader {
    before: *mut ChunkHeader,
    free: *mut u8,
    end: *mut u8,
}

struct Mark<'a> {
    number: u64,
    line: u64,
    before: Option<&'a Mark<'a>>,
}

/// The header, and the places of 41 marks and 2 words.
const HEADED: Layout = Layout::new::<[u64; 3 + 41 * 3 + 2]>();

impl Headed {
    fn alloc<T>(&self, value: T) -> &T {
        assert!(align_of::<T>() <= 8, "each chunk starts at a multiple of 8");
        let last = self.last.get();
        // SAFETY: `last` is null or leads to the header of a chunk, and no reference to the header exists.
        let room = unsafe { last.as_ref() }.map_or(0, |last| last.end.addr() - last.free.addr());
        if room < size_of::<T>() {
            self.grow();
        }
        // SAFETY: `grow` has initialized the header.
        let last = unsafe { &mut *self.last.get() };
        let place = last.free.cast::<T>();
        last.free = last.free.wrapping_add(size_of::<T>());
        // SAFETY: the place has the size and the alignment of a `T`, and no other value has it.
        unsafe { place.write(value) };
        // SAFETY: it is initialized, and nobody has a mutable reference to it.
        unsafe { &*place }
    }

    #[inline(never)]
    fn grow(&self) {
        // SAFETY: the size is not zero.
        let chunk = unsafe { std::alloc::alloc(HEADED) };
        assert!(!chunk.is_null());
        let free = chunk.wrapping_add(size_of::<ChunkHeader>());
        let header = ChunkHeader { before: self.last.get(), free, end: chunk.wrapping_add(HEADED.size()) };
        // SAFETY: the chunk has room for the header, at a multiple of 8.
        unsafe { chunk.cast::<ChunkHeader>().write(header) };
        self.last.set(chunk.cast());
    }
}

struct Parsed<'a> {
    last: Option<&'a Node<'a>>,
}

struct Marked<'a> {
    last: Option<&'a Mark<'a>>,
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
    let headed: &Headed = Box::leak(Box::new(Headed { last: Cell::new(std::ptr::null_mut()) }));
    let mut marks = None;
    for number in 0..50 {
        marks = Some(headed.alloc(Mark { number, line: number, before: marks }));
    }
    let marked = Box::new(Marked { last: marks });
    dmd::dump(&dump).expect("a dump");
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("standard input");
    black_box((first, parsed, upward, headed, marked));
}
