use std::alloc::Layout;
use std::ptr;

use crossbeam_queue::ArrayQueue;
use memory_reporter::{MallocSizeOfOps, Reading};

/// The queue has a slot for each value that it can contain. Memory that values own is not visible.
pub fn measure<T, R: Reading>(queue: &ArrayQueue<T>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let layout = Layout::array::<(usize, T)>(queue.capacity());
    ops.enclosing(ptr::null::<T>(), layout.unwrap_or(Layout::new::<()>()))
}
