//! Audits of `size()`: the faults that databases had, each with the field that explains it.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use memory_heap_test::{SizeAudit, audit};
use memory_reporter::MallocSizeOf;

memory_heap_test::global_allocator!(std::alloc::System);

fn failure(code: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(code)).expect_err("the audit fails");
    panic.downcast_ref::<String>().expect("a text").clone()
}

/// An accumulator of a query, as databases write it.
#[derive(MallocSizeOf)]
struct Accumulator {
    values: Vec<u64>,
    names: Vec<String>,
    counts: HashMap<u64, u64>,
    #[malloc_size_of(with = shared)]
    buffers: Vec<Arc<Vec<u8>>>,
}

fn shared<R: memory_reporter::Reading>(
    buffers: &Vec<Arc<Vec<u8>>>,
    ops: &mut memory_reporter::MallocSizeOfOps<R>,
) -> usize {
    buffers.size_of_excluding_this(ops)
}

impl Accumulator {
    fn new() -> Self {
        let buffer = Arc::new(vec![1; 3000]);
        Self {
            values: Vec::with_capacity(100),
            names: vec!["a name".to_owned(), "another name".to_owned()],
            counts: (0..50).map(|i| (i, i)).collect(),
            buffers: vec![buffer; 10],
        }
    }

    fn heap(&self) -> usize {
        memory_reporter::computed_size_of(self)
    }

    fn values_bytes(&self) -> usize {
        self.values.capacity() * 8
    }
}

#[test]
fn a_right_size_passes_with_and_without_the_value_itself() {
    audit!(value = Accumulator::new(), value.heap());
    audit!(value = Accumulator::new(), value.heap() + size_of::<Accumulator>());
    let value = Accumulator::new();
    audit!(value, value.heap());
    audit!(value, value.heap() * 95 / 100, within 10 %);
    failure(|| audit!(value, value.heap() * 95 / 100, within 1 %));
}

#[test]
fn a_size_of_the_value_alone_names_the_error() {
    let message = failure(|| audit!(value = Accumulator::new(), size_of_val(value)));
    assert!(message.starts_with("the size of `audits::Accumulator` is not its memory\n"), "{message}");
    assert!(message.contains("(-9") && message.contains("allocated: "), "{message}");
}

#[test]
fn a_missing_field_is_named() {
    let message = failure(|| audit!(value = Accumulator::new(), value.heap() - value.values_bytes()));
    assert!(message.contains("missing: `values` (800 bytes)"), "{message}");
    // The length instead of the capacity leaves out the whole block here.
    let message = failure(|| {
        audit!(value = Accumulator::new(), {
            value.heap() - value.names.iter().map(String::capacity).sum::<usize>()
        });
    });
    assert!(message.contains("missing: `names/(elements)` (18 bytes)"), "{message}");
    let message = failure(|| {
        audit!(value = Accumulator::new(), {
            value.heap() - value.values_bytes() - memory_reporter::computed_size_of(&value.counts)
        });
    });
    assert!(message.contains("missing: `counts`") && message.contains("missing: `values`"), "{message}");
}

#[test]
fn a_shared_block_that_counts_for_each_owner_is_named() {
    let message = failure(|| {
        audit!(value = Accumulator::new(), {
            let one = memory_reporter::computed_size_of(&*value.buffers[0]) + 16 + size_of::<Vec<u8>>();
            value.heap() + 9 * one
        });
    });
    assert!(message.contains("counted 10 times: `buffers/(elements)`"), "{message}");
}

#[test]
fn headers_that_are_inline_are_named() {
    let message = failure(|| audit!(value = Accumulator::new(), value.heap() + 2 * size_of::<String>()));
    assert!(message.contains("counted although inline: 2 x 24 bytes at `names/(elements)`"), "{message}");
    let message = failure(|| audit!(value = Accumulator::new(), value.heap() + size_of::<Vec<u8>>()));
    assert!(message.contains("counted although inline: 1 x 24 bytes"), "{message}");
}

#[test]
fn bad_sizes_are_errors() {
    let message = failure(|| {
        audit!(value = vec![1_u8; 10], {
            if !value.is_empty() {
                panic!("on purpose")
            }
            0_usize
        });
    });
    assert!(message.contains("panicked: on purpose"), "{message}");
    let message = failure(|| audit!(value = vec![1_u8; 10], usize::MAX - value.len()));
    assert!(message.contains("not in the address space"), "{message}");
    let message = failure(|| audit!(value = vec![1_u8; 10], -(value.len() as i64)));
    assert!(message.contains("not in the address space"), "{message}");
    let message = failure(|| audit!(value = vec![1_u8; 10], value.clone().len() + 1));
    assert!(message.contains("the method itself allocated 1 blocks"), "{message}");
}

#[test]
fn memory_that_the_walk_does_not_see_is_counted() {
    #[derive(MallocSizeOf)]
    struct Hidden {
        seen: Vec<u8>,
        #[malloc_size_of(ignore = "of another library")]
        hidden: Vec<u8>,
    }
    let make = || Hidden { seen: vec![1; 100], hidden: vec![1; 900] };
    // A size with the hidden field is right. The walk alone cannot see the error of a size without it.
    audit!(value = make(), value.seen.capacity() + value.hidden.capacity());
    let value = make();
    audit!(value, value.seen.capacity());
    for inline in [0, size_of::<Hidden>()] {
        let message = failure(|| audit!(value = make(), value.seen.capacity() + inline));
        assert!(message.contains("error:     -") && message.contains("900 allocated bytes"), "{message}");
    }
    // Blocks that are older than the value belong to it or not.
    let older = vec![1_u8; 50];
    audit!(value = vec![older; 1], value[0].capacity() + value.capacity() * size_of::<Vec<u8>>());
    let audit = SizeAudit::measure_new(make, |value| value.seen.capacity() as i128 / 2).expect("an audit");
    assert_eq!((audit.walked, audit.allocated), (100, Some(1000)));
    assert!(audit.to_string().contains("the walk does not see 900 allocated bytes"), "{audit}");
}

/// A type whose size the derive writes.
#[derive(MallocSizeOf)]
#[malloc_size_of(size_method = memory_size)]
struct Derived<T> {
    values: Vec<T>,
    names: HashMap<String, Box<T>>,
}

#[test]
fn the_derive_writes_a_size_that_an_audit_accepts() {
    let make = || Derived {
        values: Vec::with_capacity(70),
        names: (0..100).map(|i| (i.to_string(), Box::new(i))).collect(),
    };
    audit!(value = make(), value.memory_size());
    let value: Derived<u64> = make();
    assert_eq!(value.memory_size(), size_of_val(&value) + memory_reporter::computed_size_of(&value));
}
