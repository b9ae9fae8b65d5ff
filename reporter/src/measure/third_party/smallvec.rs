//! `smallvec`: exact; a vector that is not on the heap owns only the heap of its elements.

use core::alloc::Layout;

use smallvec::{Array, SmallVec};

use crate::measure::impls::sequence::elements;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

impl<A: Array> MallocSizeOf for SmallVec<A>
where
    A::Item: MallocSizeOf,
{
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if A::Item::NEEDS_WALK || ops.wants_names() {
            self.size_of_each(ops, A::Item::size_of_excluding_this)
        } else {
            self.shallow_size_of_excluding_this(ops)
        }
    }
}

impl<A: Array> MallocSizeOfEach for SmallVec<A> {
    type Each<'a>
        = &'a A::Item
    where
        A: 'a;

    #[inline]
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        each: impl FnMut(&'a A::Item, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        self.shallow_size_of_excluding_this(ops) + elements(self.iter(), ops, each)
    }

    #[inline]
    #[allow(unsafe_code, reason = "names the vector's block")]
    fn shallow_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if !self.spilled() {
            return 0;
        }
        let Ok(layout) = Layout::array::<A::Item>(self.capacity()) else { return 0 };
        // SAFETY: the vector is on the heap, so its elements start a block that was allocated for its capacity.
        unsafe { ops.block(self.as_ptr(), layout) }
    }
}
