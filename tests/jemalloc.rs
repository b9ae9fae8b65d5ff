//! The global allocator is jemalloc: crates that ask the C library about its blocks die here.

use std::collections::{HashMap, HashSet};
use std::rc::{self, Rc};
use std::sync::{Arc, Weak};

use memory_reporter::{
    Collection, MemoryReporter, Reports, amounts, collect_report, computed_size_of, declared_allocator,
    malloc_size_of, minimize_memory_usage,
};

memory_reporter::global_allocator!(tikv_jemallocator::Jemalloc);

#[test]
fn sizes_are_those_of_jemalloc() {
    let text = String::from("five!");
    assert_eq!((computed_size_of(&text), malloc_size_of(&text)), (5, 8));
    let words: Vec<String> = (0..1000).map(|i| format!("word {i}")).collect();
    let slop = malloc_size_of(&words) - computed_size_of(&words);
    assert!((1..40_000).contains(&slop), "{slop} bytes of slop");
    assert!(declared_allocator().unwrap().name().ends_with("Jemalloc"));
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

/// Without headers between blocks, a value without size lies where the next block starts.
#[test]
fn a_shared_value_without_size_hides_no_other_block() {
    let mut ends = (Vec::<Arc<()>>::new(), Vec::<Rc<()>>::new(), Vec::<Arc<str>>::new());
    let mut weak = (Vec::<Weak<()>>::new(), Vec::<rc::Weak<[u64]>>::new());
    let mut owners = Vec::new();
    for _ in 0..100 {
        let mut own = || owners.push(triomphe::Arc::new(Box::new([0_u8; 1000])));
        ends.0.push(Arc::new(()));
        own();
        ends.1.push(Rc::new(()));
        own();
        ends.2.push(Arc::from(""));
        own();
        weak.0.push(Arc::downgrade(&Arc::new(())));
        own();
        weak.1.push(Rc::downgrade(&Rc::from([].as_slice())));
        own();
    }
    let starts: HashSet<usize> = owners.iter().map(|arc| arc.heap_ptr().addr()).collect();
    let after = |arc: &Arc<()>| starts.contains(&Arc::as_ptr(arc).addr());
    assert!(ends.0.iter().any(after), "no block starts where a value lies");
    let computed = computed_size_of(&ends) + computed_size_of(&weak) + computed_size_of(&owners);
    let measured = malloc_size_of(&ends) + malloc_size_of(&weak) + malloc_size_of(&owners);
    assert!(computed > 500 * 1000);
    let together = (ends, weak, owners);
    assert_eq!((computed_size_of(&together), malloc_size_of(&together)), (computed, measured));
    // Whoever reaches a block knows it again.
    let (ends, ..) = together;
    let clones: Vec<_> = ends.0.iter().cloned().chain(ends.0.iter().cloned()).collect();
    let once = computed_size_of(&ends) + computed_size_of(&clones) - 100 * 16;
    assert_eq!(computed_size_of(&(ends, clones)), once);
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
