use std::alloc::Layout;

use bit_vec::BitVec;
use memory_reporter::{MallocSizeOfOps, Reading};

pub fn measure<R: Reading>(bits: &BitVec, ops: &mut MallocSizeOfOps<R>) -> usize {
    let layout = Layout::array::<u32>(bits.capacity() / 32).unwrap_or(Layout::new::<()>());
    ops.enclosing(bits.storage().as_ptr(), layout)
}
