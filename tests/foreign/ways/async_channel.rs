use std::alloc::Layout;
use std::ptr;

use async_channel::Receiver;
use memory_reporter::{MallocSizeOfOps, Reading};

/// A bounded channel has a slot for each message that it can contain. Memory that messages own is not visible.
pub fn measure<T, R: Reading>(receiver: &Receiver<T>, ops: &mut MallocSizeOfOps<R>) -> usize {
    let layout = match receiver.capacity() {
        Some(slots) => Layout::array::<(usize, T)>(slots),
        None => Layout::array::<T>(receiver.len()),
    };
    ops.enclosing(ptr::null::<T>(), layout.unwrap_or(Layout::new::<()>()))
}
