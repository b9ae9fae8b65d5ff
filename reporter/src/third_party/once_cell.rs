//! `once_cell`: exact; of a `Lazy` without its value, what the function captured is not seen.

use core::mem::needs_drop;

use once_cell::{sync, unsync};

use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;
use crate::skipped::SkipReason;

macro_rules! once {
    ($($module:ident),*) => {$(
        impl<T: MallocSizeOf> MallocSizeOf for $module::OnceCell<T> {
            const NEEDS_WALK: bool = T::NEEDS_WALK;

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                self.get().map_or(0, |value| value.size_of_excluding_this(ops))
            }
        }

        /// Never initialised by a look.
        impl<T: MallocSizeOf, F: FnOnce() -> T> MallocSizeOf for $module::Lazy<T, F> {
            const NEEDS_WALK: bool = T::NEEDS_WALK || needs_drop::<F>();

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                match Self::get(self) {
                    Some(value) => value.size_of_excluding_this(ops),
                    // What needs no drop owns nothing.
                    None if needs_drop::<F>() => ops.skip::<Self>(SkipReason::Opaque),
                    None => 0,
                }
            }
        }
    )*};
}
once!(sync, unsync);
