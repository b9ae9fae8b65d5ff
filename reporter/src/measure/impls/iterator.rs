//! Iterators that own their elements.

use core::alloc::Layout;
use core::array;
use std::vec;

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

/// The iterator gives access to the remaining elements, but not to their block. So the walk counts only these elements.
impl<T: MallocSizeOf> MallocSizeOf for vec::IntoIter<T> {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let left = self.as_slice();
        let own = ops.enclosing(left.as_ptr(), Layout::for_value(left));
        own + ops.contents(|ops| left.size_of_excluding_this(ops))
    }
}

impl<T: MallocSizeOf, const N: usize> MallocSizeOf for array::IntoIter<T, N> {
    const NEEDS_WALK: bool = T::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.as_slice().size_of_excluding_this(ops)
    }
}
