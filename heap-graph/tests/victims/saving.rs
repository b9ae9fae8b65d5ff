//! Writes a snapshot of blocks with stacks from DMD. Usage: with `DMD`: `heap_graph_victim FILE`.

use std::alloc::System;
use std::hint::black_box;

use heap_graph::HeapGraph;
use memory_reporter::MallocSizeOf;

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

#[derive(MallocSizeOf)]
struct Cache {
    pages: Vec<String>,
    index: Box<[u64]>,
}

#[inline(never)]
fn fill_pages() -> Vec<String> {
    // Prevents a tail call, which would remove this function from the stack.
    black_box((0..100).map(make_page).collect())
}

#[inline(never)]
fn make_page(number: usize) -> String {
    format!("page {number}")
}

#[inline(never)]
fn make_index() -> Box<[u64]> {
    vec![7; 1000].into_boxed_slice()
}

fn main() {
    let file = std::env::args_os().nth(1).expect("a file");
    let cache = Cache { pages: fill_pages(), index: make_index() };
    HeapGraph::save(file, |roots| roots.add("cache", &cache)).expect("writable");
}
