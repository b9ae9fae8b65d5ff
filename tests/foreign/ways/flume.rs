use std::alloc::Layout;
use std::ptr;

use flume::Receiver;
use memory_reporter::{MallocSizeOfOps, Reading};

/// The waiting messages. Memory that messages own is not visible.
pub fn measure<T, R: Reading>(receiver: &Receiver<T>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let layout = Layout::array::<T>(receiver.len());
    ops.enclosing(ptr::null::<T>(), layout.unwrap_or(Layout::new::<()>()))
}
