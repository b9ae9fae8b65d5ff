use std::alloc::Layout;

use id_arena::Arena;
use memory_reporter::{MallocSizeOf, MallocSizeOfOps, Reading};

/// The free room after the last element is not visible.
pub fn measure<T: MallocSizeOf, R: Reading>(arena: &Arena<T>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let Some((_, first)) = arena.iter().next() else { return 0 };
    let layout = Layout::array::<T>(arena.len()).unwrap_or(Layout::new::<()>());
    let own = ops.enclosing(&raw const *first, layout);
    own + ops.contents(|ops| arena.iter().map(|(_, element)| ops.element(element)).sum())
}
