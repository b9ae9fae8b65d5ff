//! A test binary without a declared allocator: assertions name the line to add.

use memory_heap_test::{Scope, assert_heap};

#[test]
#[should_panic = "add `memory_reporter::global_allocator!(std::alloc::System);`"]
fn a_missing_allocator_is_not_zero() {
    let ((), scope) = Scope::measure(|| ());
    assert_heap!(scope, allocs == 0, retained == 0);
}
