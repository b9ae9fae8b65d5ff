//! `once_cell`: exact, except that a `Lazy` without a value does not count the captures of its function.

use core::mem::needs_drop;

use memory_report::SkipReason;
use once_cell::{sync, unsync};

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

macro_rules! once {
    ($($module:ident),*) => {$(
        impl<T: MallocSizeOf> MallocSizeOf for $module::OnceCell<T> {
            const NEEDS_WALK: bool = T::NEEDS_WALK;

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                self.get().map_or(0, |value| value.size_of_excluding_this(ops))
            }
        }

        /// The walk never initializes the value.
        impl<T: MallocSizeOf, F: FnOnce() -> T> MallocSizeOf for $module::Lazy<T, F> {
            const NEEDS_WALK: bool = T::NEEDS_WALK || needs_drop::<F>();

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                match Self::get(self) {
                    Some(value) => value.size_of_excluding_this(ops),
                    // A type that needs no drop owns no heap.
                    None if needs_drop::<F>() => ops.skip::<Self>(SkipReason::Opaque),
                    None => 0,
                }
            }
        }
    )*};
}
once!(sync, unsync);
