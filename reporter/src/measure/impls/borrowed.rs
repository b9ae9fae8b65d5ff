//! `&T` and `&mut T`, which do not own their target, and `Cow`.

use std::borrow::Cow;

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

macro_rules! reference {
    ($($reference:ty),*) => {$(
        impl<T: ?Sized> MallocSizeOf for $reference {
            const NEEDS_WALK: bool = false;

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                ops.points_to(&raw const **self)
            }
        }
    )*};
}
reference!(&T, &mut T);

impl<B: ToOwned + ?Sized> MallocSizeOf for Cow<'_, B>
where
    B::Owned: MallocSizeOf,
{
    const NEEDS_WALK: bool = <B::Owned as MallocSizeOf>::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        match self {
            Cow::Borrowed(borrowed) => ops.points_to(&raw const **borrowed),
            Cow::Owned(owned) => owned.size_of_excluding_this(ops),
        }
    }
}
