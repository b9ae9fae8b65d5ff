//! Measures `dyn` values. The generic method of [`MallocSizeOf`] cannot be called on them, so an object-safe
//! companion replaces it, as in the crate `erased_serde`.

use super::malloc_size_of::MallocSizeOf;
use super::ops::MallocSizeOfOps;
use super::reading::ErasedReading;

/// The object-safe companion of [`MallocSizeOf`]. Every measurable type implements it.
///
/// Make it a supertrait of your own trait, and call [`malloc_size_of_dyn!`](crate::malloc_size_of_dyn) with your
/// trait. A walk then measures `Box<dyn YourTrait>` like any other pointer.
///
/// ```
/// use memory_reporter::{MallocSizeOf, malloc_size_of_dyn, measure::ErasedMallocSizeOf};
///
/// trait Shape: ErasedMallocSizeOf {}
/// malloc_size_of_dyn!(Shape);
///
/// #[derive(MallocSizeOf)]
/// struct Polygon {
///     corners: Vec<(f32, f32)>,
/// }
/// impl Shape for Polygon {}
///
/// let shape: Box<dyn Shape> = Box::new(Polygon { corners: Vec::with_capacity(4) });
/// assert_eq!(memory_reporter::computed_size_of(&shape), size_of::<Polygon>() + 4 * 8);
/// ```
#[diagnostic::on_unimplemented(
    message = "the trait of `{Self}` lacks the supertrait `ErasedMallocSizeOf`",
    label = "`{Self}` does not implement `ErasedMallocSizeOf`",
    note = "write `trait TheTrait: memory_reporter::measure::ErasedMallocSizeOf`; then `malloc_size_of_dyn!(TheTrait)` measures its values"
)]
pub trait ErasedMallocSizeOf {
    /// [`MallocSizeOf::size_of_excluding_this`] of the value behind the `dyn`.
    fn erased_size_of_excluding_this(&self, ops: &mut MallocSizeOfOps<ErasedReading<'_>>) -> usize;
}

/// The impl is only for sized types. So `dyn Trait` implements the companion if and only if the companion is a
/// supertrait of `Trait`.
impl<T: MallocSizeOf> ErasedMallocSizeOf for T {
    fn erased_size_of_excluding_this(&self, ops: &mut MallocSizeOfOps<ErasedReading<'_>>) -> usize {
        self.size_of_excluding_this(ops)
    }
}

/// Implements [`MallocSizeOf`] for `dyn Trait` (also with `Send`, with `Sync` and with both), where
/// `Trait: ErasedMallocSizeOf`.
#[macro_export]
macro_rules! malloc_size_of_dyn {
    ($trait:path) => {
        impl<'dynamic> $crate::MallocSizeOf for dyn $trait + 'dynamic {
            fn size_of_excluding_this<R: $crate::Reading>(
                &self,
                ops: &mut $crate::MallocSizeOfOps<R>,
            ) -> usize {
                // The call compiles only if the companion is a supertrait. If the companion had an impl for every
                // `dyn` value, this impl would call itself.
                ops.erased(|ops| {
                    <dyn $trait + 'dynamic as $crate::measure::ErasedMallocSizeOf>::erased_size_of_excluding_this(self, ops)
                })
            }
        }
        $crate::malloc_size_of_dyn!(@ $trait, ::core::marker::Send);
        $crate::malloc_size_of_dyn!(@ $trait, ::core::marker::Sync);
        $crate::malloc_size_of_dyn!(@ $trait, ::core::marker::Send + ::core::marker::Sync);
    };
    (@ $trait:path, $($auto:tt)*) => {
        impl<'dynamic> $crate::MallocSizeOf for dyn $trait + $($auto)* + 'dynamic {
            fn size_of_excluding_this<R: $crate::Reading>(
                &self,
                ops: &mut $crate::MallocSizeOfOps<R>,
            ) -> usize {
                let plain: &(dyn $trait + 'dynamic) = self;
                $crate::MallocSizeOf::size_of_excluding_this(plain, ops)
            }
        }
    };
}
