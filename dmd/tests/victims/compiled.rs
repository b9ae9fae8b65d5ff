//! Keeps blocks of known sizes that functions with known names allocate. The tests compile this program in many ways.
//! Usage, with `DMD`: `compiled FILE REPORT`. The program writes a dump and the first report, and prints the function
//! that allocated each block.

use std::alloc::System;
use std::hint::black_box;

use memory_reporter::{CollectOptions, collect_reports, watching::SiteFrame};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

/// Both crates must come from one build.
const _: fn(SiteFrame) -> dmd::SiteFrame = |frame| frame;

#[inline(never)]
fn allocate() -> Vec<u8> {
    black_box(Vec::with_capacity(700_001))
}

#[inline(never)]
fn allocate_zeroed() -> Vec<u8> {
    black_box(vec![0; 800_001])
}

#[inline(never)]
fn reallocate() -> Vec<u8> {
    let mut list = black_box(Vec::with_capacity(10));
    list.reserve_exact(900_001);
    black_box(list)
}

#[inline(always)]
fn inlined() -> Vec<u8> {
    black_box(Vec::with_capacity(600_001))
}

#[inline(never)]
fn around() -> Vec<u8> {
    black_box(inlined())
}

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let (file, report) = (arguments.next().expect("a file"), arguments.next().expect("a second file"));
    let lists = [around(), allocate(), allocate_zeroed(), reallocate()];
    // The first collection, when no frame has been looked up yet.
    let reports = collect_reports(&CollectOptions::new());
    memory_reporter::file::write(&report, &reports).expect("writable");
    for list in &lists {
        let stack = dmd::allocation_site(list.as_ptr()).expect("DMD knows every block");
        let first = stack.frames().first().and_then(|frame| frame.function.as_deref()).unwrap_or("none");
        println!("{} {first}", list.capacity());
    }
    dmd::dump(file).expect("a dump");
    black_box(lists);
}
