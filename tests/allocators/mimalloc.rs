//! The global allocator is mimalloc: crates that pass its blocks to the C library's `malloc_usable_size` crash here.

#[path = "statics.rs"]
mod statics;
#[path = "tags.rs"]
#[allow(unsafe_code, reason = "calls the allocator")]
mod tags;
#[path = "without_headers.rs"]
mod without_headers;

use std::collections::HashMap;

use memory_reporter::{
    Collection, MemoryReporter, Reports, allocator::declared as declared_allocator, amounts, collect_report,
    computed_size_of, malloc_size_of, pressure::minimize_memory_usage,
};

memory_reporter::global_allocator!(mimalloc::MiMalloc);

#[test]
fn sizes_are_those_of_mimalloc() {
    let text = String::from("five!");
    assert_eq!((computed_size_of(&text), malloc_size_of(&text)), (5, 8));
    let words: Vec<String> = (0..1000).map(|i| format!("word {i}")).collect();
    let slop = malloc_size_of(&words) - computed_size_of(&words);
    assert!((1..40_000).contains(&slop), "{slop} bytes of slop");
    assert!(declared_allocator().unwrap().name().ends_with("MiMalloc"));
}

#[test]
fn heap_allocated_and_statistics_are_told() {
    let big = vec![1_u8; 100 << 20];
    let allocated = amounts::heap_allocated().unwrap();
    assert!((100 << 20..200 << 20).contains(&allocated), "{allocated}");
    let statistics = declared_allocator().unwrap().statistics();
    assert!(statistics.committed.unwrap() >= 100 << 20, "{statistics:?}");
    assert!(statistics.overhead.unwrap() < statistics.committed.unwrap(), "{statistics:?}");
    drop(big);
    minimize_memory_usage();
    assert!(amounts::heap_allocated().unwrap() < 100 << 20);
}

struct Part(HashMap<u32, String>);

impl MemoryReporter for Part {
    fn collect_reports(&self, out: &mut Reports) {
        collect_report!(out, "explicit/part", Heap, &self.0, "Memory used by the part.");
    }
}

#[test]
fn a_collection_has_the_allocator_s_rows() {
    let part = Part((0..1000).map(|i| (i, i.to_string())).collect());
    let reports = Collection::new().with_process().with(&part).collect();
    let amount = |path: &str| reports.iter().find(|report| report.path == path).map(|report| report.amount);
    assert!(amount("explicit/part").unwrap() < amount("heap-allocated").unwrap());
    assert!(amount("heap-committed").unwrap() > 0);
    assert!(amount("heap-overhead").unwrap() >= 0);
    assert_eq!(reports.warnings(), []);
}
