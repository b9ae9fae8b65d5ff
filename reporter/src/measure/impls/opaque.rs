//! Types that own heap but give no access to it: they count as 0 bytes and are recorded as skipped, so that the gap
//! is not silent.

/// Implements `MallocSizeOf` for opaque types.
macro_rules! opaque {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        /// Opaque: counts 0 bytes, and records the value as skipped.
        impl<$($generics)*> $crate::MallocSizeOf for $type {
            #[inline]
            fn size_of_excluding_this<R: $crate::Reading>(
                &self,
                ops: &mut $crate::MallocSizeOfOps<R>,
            ) -> usize {
                ops.skip::<Self>($crate::measure::SkipReason::Opaque)
            }
        }
    )*};
}

pub(crate) use opaque;
