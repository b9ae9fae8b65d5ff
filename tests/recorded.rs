//! Under DMD and the C library's allocator: see `recorded/values.rs`.

#[path = "recorded/values.rs"]
mod values;

memory_reporter::global_allocator!(
    dmd::Dmd<tests::Counting>: dmd::Dmd::with_usable_size(tests::Counting)
);
