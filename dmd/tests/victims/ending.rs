//! The process ends while another thread is in the middle of a dump. Usage, with `DMD`: `ending FILE`, the file of
//! that dump.

use std::alloc::System;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use memory_reporter::{MemoryReporter, Reports};

memory_reporter::global_allocator!(dmd::Dmd<System>: dmd::Dmd::new(System));

static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/pages", Heap, &PAGES, "Memory used by pages.");

static STARTED: Mutex<Option<mpsc::Sender<()>>> = Mutex::new(None);
static ENDS: AtomicBool = AtomicBool::new(false);

struct UntilTheEnd;
memory_reporter::register_reporter!(UntilTheEnd);

impl MemoryReporter for UntilTheEnd {
    fn collect_reports(&self, _: &mut Reports) {
        if let Some(started) = STARTED.lock().expect("unpoisoned").take() {
            started.send(()).expect("somebody waits");
        }
        while !ENDS.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

extern "C" fn at_exit() {
    ENDS.store(true, Ordering::Release);
}

fn main() {
    let file = std::env::args_os().nth(1).expect("a file");
    *PAGES.lock().expect("unpoisoned") = vec![vec![0; 10_000]; 100];
    let (started, wait) = mpsc::channel();
    *STARTED.lock().expect("unpoisoned") = Some(started);
    // SAFETY: `at_exit` has the type that `atexit` requires, and no precondition.
    unsafe { libc::atexit(at_exit) };
    std::thread::spawn(move || dmd::report_and_dump(file));
    wait.recv().expect("the reporter starts");
}
