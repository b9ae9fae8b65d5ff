//! stats_alloc: the whole process.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    scope_benches::bench("stats_alloc", |work| {
        let region = Region::new(ALLOCATOR);
        work();
        assert!(region.change().allocations > 0);
    });
}
