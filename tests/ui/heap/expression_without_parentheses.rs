use memory_heap_test::{Scope, assert_heap};

fn main() {
    let lines = 3;
    let ((), scope) = Scope::measure(|| ());
    assert_heap!(scope, allocs == lines + 1);
}
