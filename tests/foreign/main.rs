//! Shows how to measure types of crates for which memory-reporter has no feature. Each file in `ways/` contains the
//! code for one crate, as the documentation shows it. The tests compare the measured sizes with a counting allocator.

#![allow(unreachable_pub, missing_docs, missing_debug_implementations, reason = "code of the documentation")]

mod channels;
mod page;
mod values;

memory_reporter::global_allocator!(allocators::Counting);

/// The code of the documentation.
mod ways {
    pub mod async_channel;
    pub mod bit_vec;
    pub mod bstr;
    pub mod camino;
    pub mod crossbeam_channel;
    pub mod crossbeam_queue;
    pub mod csv;
    pub mod fixedbitset;
    pub mod flume;
    pub mod generational_arena;
    pub mod hashlink;
    pub mod http;
    pub mod hyper;
    pub mod id_arena;
    pub mod lasso;
    pub mod memmap2;
    pub mod moka;
    pub mod moka_future;
    pub mod ndarray;
    pub mod prost;
    pub mod quick_cache;
    pub mod regex_automata;
    pub mod ropey;
    pub mod semver;
    pub mod tokio;
    pub mod tokio_tasks;
    pub mod toml;
    pub mod typed_arena;
}

type Ops = memory_reporter::MallocSizeOfOps<memory_reporter::measure::ComputedReading>;

/// Asserts that a function measures all requested bytes.
fn exact<T>(name: &str, make: impl FnOnce() -> T, measure: impl FnOnce(&T, &mut Ops) -> usize) {
    let (value, held) = allocators::grown(make);
    let mut ops = Ops::computed();
    assert_eq!(measure(&value, &mut ops) as isize, held.asked, "{name}");
    assert_eq!(ops.skipped(), [], "{name}");
}

/// Asserts that a function measures at least `percent` of the requested bytes, and at most all of them.
fn at_least<T>(
    name: &str,
    percent: isize,
    make: impl FnOnce() -> T,
    measure: impl FnOnce(&T, &mut Ops) -> usize,
) {
    let (value, held) = allocators::grown(make);
    let measured = measure(&value, &mut Ops::computed()) as isize;
    assert!(measured <= held.asked, "{name}: {measured} of {held:?}");
    assert!(measured * 100 >= held.asked * percent, "{name}: {measured} of {held:?}");
}

fn text(n: usize) -> String {
    "x".repeat(n)
}
