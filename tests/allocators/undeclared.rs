//! A program that declares no allocator: the library computes all sizes, which are correct for any allocator.

#[path = "statics.rs"]
mod statics;

use std::collections::HashMap;

use allocators::{Counting, grown};
use memory_reporter::{
    Collection, MallocSizeOfOps, MemoryReporter, Reports, amounts, collect_report, computed_size_of,
    malloc_size_of, memory_report::WarningKind,
};

#[global_allocator]
static GLOBAL: Counting = Counting;

#[test]
fn sizes_are_the_bytes_asked_for() {
    let (map, held) = grown(|| (0..1000_u32).map(|i| (i, i.to_string())).collect::<HashMap<_, _>>());
    assert_eq!(malloc_size_of(&map) as isize, held.asked);
    assert_eq!(computed_size_of(&map) as isize, held.asked);
    assert!(MallocSizeOfOps::measured().is_none());
    assert_eq!(amounts::heap_allocated(), None);
    assert!(!amounts::has_malloc_usable_size());
}

struct Part(Vec<u8>);

impl MemoryReporter for Part {
    fn collect_reports(&self, out: &mut Reports) {
        collect_report!(out, "explicit/part", Heap, &self.0, "Memory used by the part.");
    }
}

#[test]
fn a_collection_of_some_reporters_warns_of_nothing() {
    let reports = Collection::new().with(&Part(vec![1; 10])).collect();
    assert_eq!(reports.len(), 1);
    assert!(reports.warnings().is_empty() && reports.is_partial());
    assert!(!Collection::new().with_process().collect().is_partial());
}

#[test]
fn a_collection_says_what_line_to_add() {
    let reports = Collection::new().with_process().with(&Part(vec![1; 10])).collect();
    assert!(reports.iter().all(|report| report.path != "heap-allocated"));
    assert!(reports.iter().any(|report| report.path == "explicit/part" && report.amount == 10));
    let warning = reports.warnings().iter().find(|warning| warning.subject == "heap-allocated").unwrap();
    assert_eq!(warning.kind, WarningKind::Unavailable);
    assert!(warning.message.contains("memory_reporter::global_allocator!(std::alloc::System);"));
    assert!(!reports.usable_size_known());
}

#[test]
fn a_scope_names_the_missing_line_and_never_returns_zero() {
    let (kept, scope) = memory_reporter::scopes::Scope::measure(|| vec![1_u8; 100]);
    let error = scope.figures().unwrap_err().to_string();
    assert!(error.contains("memory_reporter::global_allocator!(std::alloc::System);"), "{error}");
    drop(kept);
}
