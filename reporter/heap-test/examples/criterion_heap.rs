//! Counts allocations in a bench of criterion: `cargo run --release --example criterion_heap -- --bench`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use memory_heap_test::HeapMeasurement;

memory_heap_test::global_allocator!(std::alloc::System);

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn main() {
    for (name, measurement) in
        [("allocations", HeapMeasurement::allocations()), ("bytes", HeapMeasurement::bytes())]
    {
        // Each iteration has the same figures, so few samples are enough.
        let mut criterion = Criterion::default()
            .with_measurement(measurement)
            .sample_size(10)
            .without_plots()
            .configure_from_args();
        let mut group = criterion.benchmark_group(name);
        for count in [4, 16] {
            let text = vec!["word"; count].join(" ");
            group.throughput(Throughput::Elements(count as u64));
            group.bench_with_input(BenchmarkId::new("words", count), &text, |bencher, text| {
                bencher.iter(|| words(black_box(text)));
            });
        }
        group.finish();
    }
}
