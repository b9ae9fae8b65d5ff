//! Cells: the walk enters a cell if it can, and otherwise records it as skipped.

use core::cell::{Cell, OnceCell, RefCell, UnsafeCell};
use core::mem::MaybeUninit;

use memory_report::SkipReason;

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reach::MeasuredLock;
use crate::measure::reading::Reading;

/// Implements `MallocSizeOf` for types that hide a value. The value may own heap.
macro_rules! hidden {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        /// Not measurable: counts 0 bytes, and records the value as skipped if it can own heap.
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
        self.measure_value(ops, T::size_of_excluding_this)
    }
}

impl<T: ?Sized> MeasuredLock for RefCell<T> {
    type Value = T;

    #[inline]
    fn measure_value<R: Reading>(
        &self,
        ops: &mut MallocSizeOfOps<R>,
        measure: impl FnOnce(&T, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        match self.try_borrow() {
            Ok(value) => measure(&value, ops),
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
