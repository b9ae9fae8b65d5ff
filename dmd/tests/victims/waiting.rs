//! A program that answers requests and signals until its input ends. It does not declare its wrapper to
//! `memory-reporter`. Usage: `waiting`, with `ABOUT_MEMORY`, and with or without `DMD`. It prints `ready` when it is
//! ready.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::System;
use std::io::Read as _;
use std::sync::Mutex;

#[global_allocator]
static ALLOCATOR: dmd::Dmd<System> = dmd::Dmd::new(System);

static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/pages", Heap, &PAGES, "Memory used by pages.");

fn main() {
    *PAGES.lock().expect("unpoisoned") = vec![vec![0; 10_000]; 100];
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("readable");
}
