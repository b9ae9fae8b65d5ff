use std::alloc::Layout;
use std::ptr;

use memory_reporter::{MallocSizeOfOps, Reading};
use tokio::sync::mpsc::Sender;

/// The waiting messages. Memory that messages own is not visible.
pub fn measure<T, R: Reading>(sender: &Sender<T>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let layout = Layout::array::<T>(sender.max_capacity() - sender.capacity());
    ops.enclosing(ptr::null::<T>(), layout.unwrap_or(Layout::new::<()>()))
}
