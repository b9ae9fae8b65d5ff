//! Cells: looked into where they can be, recorded as skipped where not.

use core::cell::{Cell, OnceCell, RefCell, UnsafeCell};
use core::mem::MaybeUninit;

use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;
use crate::skipped::SkipReason;

/// Types that hide a value which may own heap.
macro_rules! hidden {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        /// Cannot be looked into: 0 bytes, and recorded as not seen if it can own heap.
        impl<$($generics)*> MallocSizeOf for $type {
            const NEEDS_WALK: bool = T::NEEDS_WALK;

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                if T::NEEDS_WALK { ops.skip::<Self>(SkipReason::Opaque) } else { 0 }
            }
        }
    )*};
}
hidden!(
    [T: MallocSizeOf] Cell<T>;
    [T: MallocSizeOf + ?Sized] UnsafeCell<T>;
    [T: MallocSizeOf] MaybeUninit<T>;
);

impl<T: MallocSizeOf + ?Sized> MallocSizeOf for RefCell<T> {
    const NEEDS_WALK: bool = T::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if !T::NEEDS_WALK && !ops.wants_names() {
            return 0;
        }
        match self.try_borrow() {
            Ok(value) => value.size_of_excluding_this(ops),
            Err(_) => ops.skip::<Self>(SkipReason::Borrowed),
        }
    }
}

impl<T: MallocSizeOf> MallocSizeOf for OnceCell<T> {
    const NEEDS_WALK: bool = T::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.get().map_or(0, |value| value.size_of_excluding_this(ops))
    }
}
