//! Tags the allocations of a library. One of the reporters measures a part of these blocks.

use std::hint::black_box;
use std::path::Path;
use std::sync::Mutex;

use memory_reporter::{CollectOptions, collect_reports, tags::Tag};

static PAGES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/pages", Heap, &PAGES, "Memory used by pages.");

#[inline(never)]
fn forget(size: u8) {
    for _ in 0..1000 {
        black_box(Box::leak(vec![1_u8; usize::from(size) * 100].into_boxed_slice()));
    }
}

/// Writes a report to a file.
pub(crate) fn run(report: &Path) {
    let tag = Tag::new("explicit/library");
    tag.run(|| forget(3));
    forget(5);
    // The reporter measures these 100 blocks and their list, although they have the tag.
    tag.run(|| *PAGES.lock().expect("unpoisoned") = vec![vec![0; 10_000]; 100]);
    drop(collect_reports(&CollectOptions::new()));
    let reports = collect_reports(&CollectOptions::new());
    memory_reporter::file::write(report, &reports).expect("writable");
}
