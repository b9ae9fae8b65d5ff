use memory_heap_test::{Scope, assert_heap};

fn main() {
    let ((), scope) = Scope::measure(|| ());
    assert_heap!(scope);
}
