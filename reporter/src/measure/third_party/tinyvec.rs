//! `tinyvec`: exact; a vector on the heap is a `Vec`.

use tinyvec::{Array, ArrayVec, SliceVec, TinyVec};

use crate::measure::impls::plain::plain;
use crate::measure::impls::sequence::elements;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

plain!([T] SliceVec<'_, T>);

impl<A: Array> MallocSizeOf for ArrayVec<A>
where
    A::Item: MallocSizeOf,
{
    const NEEDS_WALK: bool = A::Item::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.as_slice().size_of_excluding_this(ops)
    }
}

impl<A: Array> MallocSizeOf for TinyVec<A>
where
    A::Item: MallocSizeOf,
{
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        match self {
            Self::Inline(vec) => vec.size_of_excluding_this(ops),
            Self::Heap(vec) => vec.size_of_excluding_this(ops),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<A: Array> MallocSizeOfEach for TinyVec<A> {
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
        match self {
            Self::Inline(vec) => elements(vec.iter(), ops, each),
            Self::Heap(vec) => vec.size_of_each(ops, each),
        }
    }
}
