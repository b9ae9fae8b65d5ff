//! Values in the chunks of an arena, to which only vectors on the stack lead, and buffers that grew. Usage: `DMD=--mode=scan typed_heap_arena
//! DUMP`. The program writes the dump and prints a line, and ends when its standard input ends.

#![allow(clippy::print_stdout, reason = "the test reads it")]
#![allow(dead_code, reason = "only the types and the blocks count")]

use std::alloc::System;
use std::hint::black_box;
use std::io::Read as _;

use bumpalo::Bump;

#[global_allocator]
static GLOBAL: dmd::Dmd<System> = dmd::Dmd::new(System);

struct Node<'a> {
    number: u64,
    /// Eight bytes, so that values need no padding.
    name: &'a str,
    children: [Option<&'a Node<'a>>; 2],
}

/// Two slices that became longer: the arena still contains the shorter ones.
struct Longer<'a> {
    nodes: &'a [&'a Node<'a>],
    /// Equal numbers are no evidence, so the shorter slice has no type.
    numbers: &'a [u64],
}

/// Its values were in the arena before the arena was emptied.
struct Old([u64; 9]);

/// Its values are in the places of the old values.
struct New([u64; 7]);

/// A binary tree with 2 to the power of `depth` values, minus 1.
fn tree<'a>(arena: &'a Bump, number: u64, depth: u32) -> Option<&'a Node<'a>> {
    let depth = depth.checked_sub(1)?;
    let children = [tree(arena, 2 * number, depth), tree(arena, 2 * number + 1, depth)];
    let name = arena.alloc_str(&format!("node{:04}", number % 10_000));
    Some(arena.alloc(Node { number, name, children }))
}

fn main() {
    let dump = std::env::args_os().nth(1).expect("a file");
    let arena: &Bump = Box::leak(Box::new(Bump::new()));
    let trees: Vec<&Node<'_>> = (1..=8).filter_map(|number| tree(arena, number, 6)).collect();
    let (_, _) = (arena.alloc_slice_copy(&trees[..4]), arena.alloc_slice_copy(&[7_u64, 8]));
    let longer =
        Longer { nodes: arena.alloc_slice_copy(&trees), numbers: arena.alloc_slice_copy(&[7, 8, 9]) };
    let longer = Box::new(longer);
    let mut reused = Box::new(Bump::new());
    let mut old: Vec<&Old> = Vec::with_capacity(200);
    for number in 0..200 {
        let one: *const Old = reused.alloc(Old([number; 9]));
        // SAFETY: the program uses these references only while the arena has the values.
        old.push(unsafe { &*one });
    }
    // The buffer still contains the pointers.
    old.clear();
    reused.reset();
    let reused: &Bump = Box::leak(reused);
    let new: Vec<&New> = (0..100).map(|number| &*reused.alloc(New([number; 7]))).collect();
    dmd::dump(&dump).expect("a dump");
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("standard input");
    println!("{}", trees.iter().map(|tree| tree.number).sum::<u64>());
    black_box((trees, longer, old, new));
}
