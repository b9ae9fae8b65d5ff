//! DMD inside of divan's allocator: divan counts the allocations of each bench, and `DMD=1` records their stacks.
//! `cargo run --release --example divan_heap -- --bench`.

use std::alloc::System;

use divan::{AllocProfiler, Bencher};
use dmd::Dmd;

#[global_allocator]
static ALLOCATOR: AllocProfiler<Dmd<System>> = AllocProfiler::new(Dmd::new(System));

#[divan::bench(args = [4, 16], sample_count = 10, sample_size = 10)]
fn words(bencher: Bencher<'_, '_>, count: usize) {
    let text = vec!["word"; count].join(" ");
    bencher.bench(|| text.split(' ').map(str::to_owned).collect::<Vec<_>>());
}

fn main() {
    divan::main();
}
