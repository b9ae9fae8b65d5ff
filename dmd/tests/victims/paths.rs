//! A reporter that reports at a different path each time. Usage, with `DMD`: `paths FILE`.

use std::alloc::System;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use memory_reporter::{CollectOptions, MemoryReporter, Reports, collect_report, collect_reports};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
static RUNS: AtomicUsize = AtomicUsize::new(0);

struct Numbered;
memory_reporter::register_reporter!(Numbered);

impl MemoryReporter for Numbered {
    fn name(&self) -> &str {
        "explicit/run"
    }

    fn collect_reports(&self, out: &mut Reports) {
        let path = format!("explicit/run-{}", RUNS.fetch_add(1, Ordering::Relaxed));
        collect_report!(out, &path, Heap, &PAGES, "Memory used by pages.");
    }
}

fn main() {
    let file = std::env::args_os().nth(1).expect("a file");
    *PAGES.lock().expect("unpoisoned") = vec![vec![0; 10_000]; 100];
    for _ in 0..100 {
        drop(collect_reports(&CollectOptions::new()));
    }
    dmd::report_and_dump("/dev/null").expect("a dump");
    dmd::report_and_dump(&file).expect("a dump");
}
