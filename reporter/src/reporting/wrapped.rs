//! Reporters behind pointers, cells and locks: these are reporters, too, and give the reports of the value inside.
//!
//! They never wait and never initialize anything. A collection records a value that somebody holds as a skipped part of
//! this reporter, as the walk of a measured value does.
//!
//! A pointer has the name of its reporter. A value that may be out of reach at times (behind a lock, or not yet
//! initialized) is named by its type, whether or not it is within reach: the name orders the reports, so it must not
//! depend on the moment at which it is asked for.

mod cells;
mod locks;
#[cfg(any(feature = "once_cell1", feature = "parking_lot012", feature = "tokio1"))]
mod other_crates;
mod pointers;

use core::any::type_name;

/// Implements the trait for types with at most one value: `reach` calls its function with the value, or records why it
/// cannot.
macro_rules! wrapped {
    ($([$($generics:tt)*] $type:ty, of $value:ty: |$this:ident, $out:ident| $reach:expr;)*) => {$(
        impl<$($generics)*> $crate::reporting::MemoryReporter for $type {
            fn name(&self) -> &str {
                $crate::reporting::wrapped::name_of::<$value>()
            }

            fn collect_reports(&self, $out: &mut $crate::reporting::Reports) {
                let $this = self;
                $reach
            }
        }
    )*};
}
pub(crate) use wrapped;

/// The name of a value that may be out of reach.
fn name_of<T: ?Sized>() -> &'static str {
    type_name::<T>()
}
