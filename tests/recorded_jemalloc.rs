//! Under DMD and jemalloc, whose blocks have more slop: see `recorded/values.rs`.

#[path = "recorded/values.rs"]
mod values;

type Jemalloc = tests::CountingOver<tikv_jemallocator::Jemalloc>;

memory_reporter::global_allocator!(
    dmd::Dmd<Jemalloc>: dmd::Dmd::with_usable_size(tests::CountingOver(tikv_jemallocator::Jemalloc))
);
