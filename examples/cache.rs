//! The code of the README.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a few lines, and the tree is the output")]

use std::{collections::HashMap, sync::Mutex};

use memory_reporter::{MallocSizeOf, collect_reports};

memory_reporter::global_allocator!(std::alloc::System);

#[derive(MallocSizeOf)]
struct Page {
    title: String,
    words: HashMap<String, Vec<u32>>,
}

static PAGES: Mutex<Vec<Page>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/cache/pages", Heap, &PAGES, "Memory used by cached pages.");

fn main() {
    for i in 0..20_000 {
        let words = (0..i % 50).map(|w| (format!("word {w}"), vec![i; 3])).collect();
        PAGES.lock().unwrap().push(Page { title: format!("page {i}"), words });
    }
    let forgotten = vec![0_u8; 3 << 20]; // memory that no reporter reports
    println!("{}", about_memory::text(&collect_reports(&Default::default())));
    drop(forgotten);
}
