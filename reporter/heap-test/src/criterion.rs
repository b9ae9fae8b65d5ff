//! A measurement for criterion 0.8: heap figures for each iteration.

use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter};

use memory_reporter::scopes::{Scope, ScopeGuard};

use crate::figure::HeapFigure;

/// Measures the heap of each iteration instead of its time.
///
/// All iterations of a bench have the same figures if the code is deterministic. One bench has one measurement, so use a
/// group for allocations, and another one for bytes:
///
/// ```no_run
/// use criterion::Criterion;
/// use memory_heap_test::HeapMeasurement;
///
/// memory_heap_test::global_allocator!(std::alloc::System);
///
/// let mut criterion = Criterion::default().with_measurement(HeapMeasurement::allocations());
/// criterion.bench_function("split", |bencher| bencher.iter(|| "a b c".split(' ').collect::<Vec<_>>()));
/// ```
///
/// # Panics
///
/// Ending a measurement panics if the figures are not exact, for example without a declared allocator.
#[derive(Clone, Copy, Debug)]
pub struct HeapMeasurement(HeapFigure);

impl HeapMeasurement {
    /// Measures the number of allocations, and of reallocations as further allocations.
    pub fn allocations() -> Self {
        Self(HeapFigure::Allocs)
    }

    /// Measures the requested bytes.
    pub fn bytes() -> Self {
        Self(HeapFigure::Bytes)
    }
}

/// A scope that this thread is in.
#[derive(Debug)]
pub struct OpenMeasurement {
    guard: ScopeGuard,
    scope: Scope,
}

impl Measurement for HeapMeasurement {
    type Intermediate = OpenMeasurement;
    type Value = u64;

    fn start(&self) -> OpenMeasurement {
        let scope = Scope::named("criterion");
        OpenMeasurement { guard: scope.enter(), scope }
    }

    fn end(&self, open: OpenMeasurement) -> u64 {
        drop(open.guard);
        let figures = open.scope.figures().unwrap_or_else(|error| panic!("the heap is not known: {error}"));
        match self.0 {
            HeapFigure::Bytes => figures.bytes,
            _ => figures.allocations + figures.reallocations,
        }
    }

    fn add(&self, a: &u64, b: &u64) -> u64 {
        a + b
    }

    fn zero(&self) -> u64 {
        0
    }

    fn to_f64(&self, value: &u64) -> f64 {
        // Criterion divides by samples: a sample of 0 has no logarithm.
        *value as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        match self.0 {
            HeapFigure::Bytes => &BytesFormatter,
            _ => &BlocksFormatter,
        }
    }
}

struct BlocksFormatter;

struct BytesFormatter;

/// Divides values by the elements or bytes of an iteration.
fn divide(values: &mut [f64], throughput: &Throughput) -> &'static str {
    let (amount, unit) = match throughput {
        Throughput::Bytes(bytes) | Throughput::BytesDecimal(bytes) => (*bytes, "/byte"),
        Throughput::Elements(elements) | Throughput::ElementsAndBytes { elements, .. } => {
            (*elements, "/element")
        }
        Throughput::Bits(bits) => (*bits, "/bit"),
    };
    values.iter_mut().for_each(|value| *value /= amount.max(1) as f64);
    unit
}

impl ValueFormatter for BlocksFormatter {
    fn scale_values(&self, _typical: f64, _values: &mut [f64]) -> &'static str {
        "blocks"
    }

    fn scale_throughputs(&self, _typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        match divide(values, throughput) {
            "/byte" => "blocks/byte",
            "/bit" => "blocks/bit",
            _ => "blocks/element",
        }
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "blocks"
    }
}

impl ValueFormatter for BytesFormatter {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        let (factor, unit) = match typical {
            small if small < 10_240.0 => (1.0, "B"),
            middle if middle < 10_485_760.0 => (1024.0, "KiB"),
            _ => (1_048_576.0, "MiB"),
        };
        values.iter_mut().for_each(|value| *value /= factor);
        unit
    }

    fn scale_throughputs(&self, _typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        match divide(values, throughput) {
            "/byte" => "B/byte",
            "/bit" => "B/bit",
            _ => "B/element",
        }
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "B"
    }
}
