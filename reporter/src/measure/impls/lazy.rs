//! `LazyCell` and `LazyLock`. The walk never initializes the value. It can read an initialized value from Rust 1.94
//! on.

use core::cell::LazyCell;
use core::mem::needs_drop;
use std::sync::LazyLock;

use memory_report::SkipReason;

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

macro_rules! lazy {
    ($($lazy:ident),*) => {$(
        /// Measures an initialized value, but not the captures of its function.
        impl<T: MallocSizeOf, F> MallocSizeOf for $lazy<T, F> {
            const NEEDS_WALK: bool = T::NEEDS_WALK || needs_drop::<F>();

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                #[cfg(lazy_get)]
                #[allow(clippy::incompatible_msrv, reason = "compiled only if the build script has found the function")]
                match Self::get(self) {
                    Some(value) => value.size_of_excluding_this(ops),
                    // A type that needs no drop owns no heap.
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
