//! `dyn` values of std's traits: the walk counts the box of a value, but not the heap that the value owns.
//!
//! The walk measures `dyn` values of your own traits completely: see
//! [`malloc_size_of_dyn!`](crate::malloc_size_of_dyn).

use core::any::Any;
use core::fmt::{Debug, Display};
use core::future::Future;
use std::error::Error;
use std::io::{BufRead, Read, Write};

/// Implements `MallocSizeOf` for a `dyn` type, and for the same type with `Send`, with `Sync` and with both.
macro_rules! hidden_behind {
    ([$($generics:tt)*] $($trait:tt)*) => {
        $crate::measure::impls::dynamic::hidden_behind!(@ [$($generics)*] [$($trait)*]);
        $crate::measure::impls::dynamic::hidden_behind!(@ [$($generics)*] [$($trait)* + Send]);
        $crate::measure::impls::dynamic::hidden_behind!(@ [$($generics)*] [$($trait)* + Sync]);
        $crate::measure::impls::dynamic::hidden_behind!(@ [$($generics)*] [$($trait)* + Send + Sync]);
    };
    (@ [$($generics:tt)*] [$($dynamic:tt)*]) => {
        /// Records the heap that the value owns as skipped. A value of size 0 owns no heap.
        #[allow(coherence_leak_check, reason = "`dyn Fn(&A)` is not `dyn Fn(A)`")]
        impl<'dynamic, $($generics)*> $crate::MallocSizeOf for dyn $($dynamic)* + 'dynamic {
            fn size_of_excluding_this<R: $crate::Reading>(
                &self,
                ops: &mut $crate::MallocSizeOfOps<R>,
            ) -> usize {
                if size_of_val(self) == 0 { 0 } else { ops.skip::<Self>($crate::measure::SkipReason::Opaque) }
            }
        }
    };
}
pub(crate) use hidden_behind;

hidden_behind!([] Any);
hidden_behind!([] Error);
hidden_behind!([] Debug);
hidden_behind!([] Display);
hidden_behind!([] Read);
hidden_behind!([] Write);
hidden_behind!([] BufRead);
hidden_behind!([T] Future<Output = T>);
hidden_behind!([T] Iterator<Item = T>);
