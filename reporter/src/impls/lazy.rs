//! `LazyCell` and `LazyLock`: looked into where the std at hand can (from Rust 1.94 on), never
//! initialised by a look.

use core::cell::LazyCell;
use core::mem::needs_drop;
use std::sync::LazyLock;

use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;
use crate::skipped::SkipReason;

macro_rules! lazy {
    ($($lazy:ident),*) => {$(
        /// The value once there is one. What its function captured is not seen.
        impl<T: MallocSizeOf, F> MallocSizeOf for $lazy<T, F> {
            const NEEDS_WALK: bool = T::NEEDS_WALK || needs_drop::<F>();

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                #[cfg(lazy_get)]
                #[allow(clippy::incompatible_msrv, reason = "only where the build script found it")]
                match Self::get(self) {
                    Some(value) => value.size_of_excluding_this(ops),
                    // What needs no drop owns nothing.
                    None if needs_drop::<F>() => ops.skip::<Self>(SkipReason::Opaque),
                    None => 0,
                }
                #[cfg(not(lazy_get))]
                if Self::NEEDS_WALK { ops.skip::<Self>(SkipReason::Opaque) } else { 0 }
            }
        }
    )*};
}
lazy!(LazyCell, LazyLock);
