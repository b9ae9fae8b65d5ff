//! Types that own heap and show none of it: 0 bytes, and recorded as skipped, so that the gap is not silent.

/// Implements `MallocSizeOf` for opaque types.
macro_rules! opaque {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        /// Opaque: 0 bytes, and recorded as skipped.
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
