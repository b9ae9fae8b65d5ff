//! The wrapper as `memory-reporter`'s declared allocator: `heap-allocated` is known, and a reporter's values
//! are measured. With `DMD` they are marked too. Usage: `declared FILE`.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::System;
use std::sync::Mutex;

use memory_reporter::{CollectOptions, collect_reports};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/pages", Heap, &PAGES, "Memory used by pages.");

fn main() {
    let file = std::env::args_os().nth(1).expect("a file");
    *PAGES.lock().expect("unpoisoned") = vec![vec![0; 10_000]; 100];
    let reports = collect_reports(&CollectOptions::new());
    let amount = |path| reports.iter().find(|report| report.path == path).map(|report| report.amount);
    // The C library gives 10,008 for 10,000, and 2,408 or so for the buffer of 100 vectors.
    let pages = amount("explicit/pages").expect("reported");
    assert!((1_003_200..1_003_300).contains(&pages), "{pages}");
    assert!(amount("heap-allocated").expect("counted") > pages);
    println!("{}", if amount("explicit/dmd/live-block-table").is_some() { "on" } else { "off" });
    if dmd::is_running() {
        dmd::report_and_dump(file).expect("writable");
    }
}
