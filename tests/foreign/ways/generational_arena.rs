use std::alloc::Layout;

use generational_arena::Arena;
use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};

/// Like the crate's own `Entry`, so that the compiler gives both the same layout.
#[allow(dead_code, reason = "only its layout is needed")]
enum Entry<T> {
    Free { next: Option<usize> },
    Occupied { generation: u64, value: T },
}

pub fn measure<T: MallocSizeOf, R: Reading>(arena: &Arena<T>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let layout = Layout::array::<Entry<T>>(arena.capacity()).unwrap_or(Layout::new::<()>());
    let inside = arena.iter().next().map_or(std::ptr::null(), |(_, first)| &raw const *first);
    let own = ops.enclosing(inside, layout);
    own + ops.contents(|ops| arena.iter().map(|(_, element)| ops.element(element)).sum())
}
