//! Prints two censuses of a running program as JSON, one on each line. Usage: with `DMD`: `heap_graph_censuses`.

#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::alloc::System;
use std::hint::black_box;

use heap_graph::{Breakdown, HeapGraph, census, take_census};
use memory_reporter::MallocSizeOf;

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

#[derive(MallocSizeOf)]
struct Page {
    title: String,
    words: Vec<u32>,
}

#[inline(never)]
fn make_page() -> Box<Page> {
    Box::new(Page { title: "a page".repeat(1000), words: vec![1; 5000] })
}

/// No value that the program adds as a root reaches these blocks.
#[inline(never)]
fn make_foreign() -> Vec<Vec<u64>> {
    // Prevents a tail call, which would remove this function from the stack.
    black_box((0..7).map(|_| vec![1; 3000]).collect())
}

fn main() {
    let pages: Vec<Box<Page>> = (0..10).map(|_| make_page()).collect();
    let foreign = black_box(make_foreign());
    let breakdown = Breakdown::parse(r#"{"by": "allocationStack", "then": {"by": "objectClass"}}"#);
    let breakdown = breakdown.expect("a breakdown");
    match take_census(&breakdown) {
        Ok(report) => println!("{}", report.to_json()),
        Err(error) => println!("{error}"),
    }
    let heap = HeapGraph::collect(|roots| roots.add("pages", &pages));
    println!("{}", census(heap.graph(), &breakdown).expect("a census").to_json());
    drop(foreign);
}
