//! The wrapper as the declared allocator of `memory-reporter`: it counts `heap-allocated`, and gives reporters the
//! sizes of their blocks. With `DMD` it also marks these blocks. Usage: `declared FILE`.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::System;
use std::sync::{Arc, Mutex};

use memory_reporter::{CollectOptions, MemoryReporter, Reports, collect_reports};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/pages", Heap, &PAGES, "Memory used by pages.");

/// Four reporters measure this value. After two of them, the reporter `Swap` puts another value at the same address.
static SHARED: Mutex<Option<Arc<Vec<u8>>>> = Mutex::new(None);
memory_reporter::define_reporter!("explicit/shared/before", Heap, &SHARED, "Memory of shared values.");
memory_reporter::define_reporter!("explicit/shared/same", Heap, &SHARED, "Memory of shared values.");
memory_reporter::define_reporter!("explicit/shared/then", Heap, &SHARED, "Memory of shared values.");
memory_reporter::define_reporter!("explicit/shared/then-too", Heap, &SHARED, "Memory of shared values.");

struct Swap;
memory_reporter::register_reporter!(Swap);

impl MemoryReporter for Swap {
    /// The name is between `same` and `then`, since reporters run in the order of their names.
    fn name(&self) -> &str {
        "explicit/shared/swap"
    }

    fn collect_reports(&self, _: &mut Reports) {
        let mut shared = SHARED.lock().expect("unpoisoned");
        // The allocator may return other free blocks of that size first.
        let mut others = Vec::with_capacity(100);
        let address = shared.as_ref().map(Arc::as_ptr);
        *shared = None;
        while others.len() < others.capacity() {
            let next = Arc::new(Vec::new());
            if Some(Arc::as_ptr(&next)) == address {
                *shared = Some(next);
                break;
            }
            others.push(next);
        }
        let shared = shared.as_mut().expect("a new value has the same address");
        *Arc::get_mut(shared).expect("the value has one owner") = vec![0; 1 << 20];
    }
}

fn main() {
    let file = std::env::args_os().nth(1).expect("a file");
    *PAGES.lock().expect("unpoisoned") = vec![vec![0; 10_000]; 100];
    *SHARED.lock().expect("unpoisoned") = Some(Arc::new(vec![0; 10]));
    let reports = collect_reports(&CollectOptions::new());
    let amount = |path: &str| reports.iter().find(|report| report.path == path).map(|report| report.amount);
    // The C library's usable sizes are 10,008 for 10,000 bytes, and about 2,408 for the buffer of 100 vectors.
    let pages = amount("explicit/pages").expect("reported");
    assert!((1_003_200..1_003_300).contains(&pages), "{pages}");
    assert!(amount("heap-allocated").expect("counted") > pages);
    let is_on = amount("explicit/dmd/live-block-table").is_some();
    let shared = |name| amount(&format!("explicit/shared/{name}")).expect("reported");
    assert!((1..1000).contains(&shared("before")));
    // Only the engine can detect that this is another block.
    assert_eq!((1 << 20..2 << 20).contains(&shared("then")), is_on, "{}", shared("then"));
    assert_eq!((shared("same"), shared("then-too")), (0, 0));
    println!("{}", if is_on { "on" } else { "off" });
    if dmd::is_running() {
        dmd::report_and_dump(file).expect("writable");
    }
}
