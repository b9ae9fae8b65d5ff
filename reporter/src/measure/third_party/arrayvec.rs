//! `arrayvec`: exact; everything is in place except the heap of the elements.

use arrayvec::{ArrayString, ArrayVec};

use crate::measure::impls::plain::plain;
use crate::measure::impls::sequence::elements;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

plain!([const N: usize] ArrayString<N>);

impl<T: MallocSizeOf, const N: usize> MallocSizeOf for ArrayVec<T, N> {
    const NEEDS_WALK: bool = T::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.as_slice().size_of_excluding_this(ops)
    }
}

#[diagnostic::do_not_recommend]
impl<T, const N: usize> MallocSizeOfEach for ArrayVec<T, N> {
    type Each<'a>
        = &'a T
    where
        T: 'a;

    #[inline]
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        each: impl FnMut(&'a T, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        elements(self.iter(), ops, each)
    }
}
