//! A program that records itself. No reporter reports some of its blocks, and two reporters report others. Usage, with
//! `DMD`: `dark FILE`. The program writes the second of two reports.

use std::alloc::System;
use std::hint::black_box;
use std::sync::Mutex;

use memory_reporter::{CollectOptions, collect_reports};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

static NAMES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/names", Heap, &NAMES, "Memory used by names.");
memory_reporter::define_reporter!("explicit/names-again", Heap, &NAMES, "Memory used by names.");

static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/pages", Heap, &PAGES, "Memory used by pages.");

#[inline(never)]
fn forget_large() {
    black_box(Box::leak(vec![1_u8; 300_000].into_boxed_slice()));
}

#[inline(never)]
fn forget_small() {
    for _ in 0..20_000 {
        black_box(Box::leak(vec![1_u8; 100].into_boxed_slice()));
    }
}

#[inline(never)]
fn name_twice() -> Vec<Vec<u8>> {
    (0..50).map(|_| vec![1_u8; 4000]).collect()
}

fn main() {
    let file = std::env::args_os().nth(1).expect("a file");
    *PAGES.lock().expect("unpoisoned") = vec![vec![0; 10_000]; 100];
    *NAMES.lock().expect("unpoisoned") = name_twice();
    forget_large();
    forget_small();
    drop(collect_reports(&CollectOptions::new()));
    let reports = collect_reports(&CollectOptions::new());
    memory_reporter::file::write(&file, &reports).expect("writable");
}
