//! A reporter that ends the process. Usage, with `DMD`: `exits WHEN`. The reporter ends the process in a `dump`, in a
//! `report`, in a `late` report with a deadline, or when another process has `asked` through the socket. With
//! `meanwhile` the main thread ends the process while the reporter still runs.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::System;
use std::io::Read as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memory_reporter::{CollectOptions, MemoryReporter, Reports, collect_reports};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/pages", Heap, &PAGES, "Memory used by pages.");
static WORDS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/words", Heap, &WORDS, "Memory used by words.");

/// Whether the reporter `Exits` has started.
static REPORTING: AtomicBool = AtomicBool::new(false);

struct Exits;
memory_reporter::register_reporter!(Exits);

impl MemoryReporter for Exits {
    /// The name is between the names of the other two reporters, which run in the order of their names.
    fn name(&self) -> &str {
        "explicit/queue"
    }

    fn collect_reports(&self, _: &mut Reports) {
        if std::env::args().nth(1).as_deref() != Some("meanwhile") {
            std::process::exit(7);
        }
        REPORTING.store(true, Ordering::Release);
        std::thread::sleep(Duration::from_millis(300));
    }
}

fn main() {
    *PAGES.lock().expect("unpoisoned") = vec![vec![0; 10_000]; 100];
    *WORDS.lock().expect("unpoisoned") = vec![vec![0; 7_777]; 100];
    match std::env::args().nth(1).as_deref() {
        Some("dump") => drop(dmd::report_and_dump("/dev/null")),
        Some("report") => drop(collect_reports(&CollectOptions::new())),
        Some("late") => {
            drop(collect_reports(&CollectOptions::new().deadline(Duration::from_secs(600))));
        }
        Some("meanwhile") => {
            println!("ready");
            while !REPORTING.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::process::exit(7);
        }
        _ => {
            println!("ready");
            std::io::stdin().read_to_end(&mut Vec::new()).expect("readable");
        }
    }
}
