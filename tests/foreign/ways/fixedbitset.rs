use std::alloc::Layout;

use fixedbitset::FixedBitSet;
use memory_reporter::{MallocSizeOfOps, Reading};

/// The free room after the last word is not visible.
pub fn measure<R: Reading>(bits: &FixedBitSet, ops: &mut MallocSizeOfOps<R>) -> usize {
    let words = bits.as_slice();
    ops.enclosing(words.as_ptr(), Layout::for_value(words))
}
