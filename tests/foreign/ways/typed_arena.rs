use std::alloc::Layout;
use std::ptr;

use memory_reporter::{MallocSizeOfOps, Reading};
use typed_arena::Arena;

/// Access to the values needs an exclusive reference, so memory that they own is not visible.
pub fn measure<T, R: Reading>(arena: &Arena<T>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let layout = Layout::array::<T>(arena.len());
    ops.enclosing(ptr::null::<T>(), layout.unwrap_or(Layout::new::<()>()))
}
