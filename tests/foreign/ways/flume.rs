use std::alloc::Layout;
use std::ptr;

use flume::Receiver;
use memory_reporter::{MallocSizeOfOps, Reading};

/// Messages that wait. What they own is not visible.
pub fn measure<T, R: Reading>(receiver: &Receiver<T>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let layout = Layout::array::<T>(receiver.len());
    ops.enclosing(ptr::null::<T>(), layout.unwrap_or(Layout::new::<()>()))
}
