use std::alloc::Layout;
use std::ptr;

use memory_reporter::{MallocSizeOfOps, Reading};
use typed_arena::Arena;

/// Values need exclusive access to be seen, so what they own is not visible.
pub fn measure<T, R: Reading>(arena: &Arena<T>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let layout = Layout::array::<T>(arena.len());
    ops.enclosing(ptr::null::<T>(), layout.unwrap_or(Layout::new::<()>()))
}
