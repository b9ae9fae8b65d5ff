//! `&mut T`, whose target is owned elsewhere, and `Cow`.

use std::borrow::Cow;

use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;

impl<T: ?Sized> MallocSizeOf for &mut T {
    const NEEDS_WALK: bool = false;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, _: &mut MallocSizeOfOps<R>) -> usize {
        0
    }
}

impl<B: ToOwned + ?Sized> MallocSizeOf for Cow<'_, B>
where
    B::Owned: MallocSizeOf,
{
    const NEEDS_WALK: bool = <B::Owned as MallocSizeOf>::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        match self {
            Cow::Borrowed(_) => 0,
            Cow::Owned(owned) => owned.size_of_excluding_this(ops),
        }
    }
}
