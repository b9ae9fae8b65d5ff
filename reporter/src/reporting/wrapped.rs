//! Pointers, cells and locks around a reporter are reporters, too: they make the reports of the value inside.
//!
//! These reporters never wait or initialize a value. If a value is locked or borrowed, the collection records it as a
//! skipped part of this reporter, as the walk of a measured value does.
//!
//! A pointer has the name of its reporter. A value that may be inaccessible at times (behind a lock, or not yet
//! initialized) has the name of its type, even while it is accessible: the name orders the reports, so it must not
//! depend on the moment.

mod cells;
mod locks;
#[cfg(any(feature = "once_cell1", feature = "parking_lot012", feature = "tokio1"))]
mod other_crates;
mod pointers;

use core::any::type_name;

/// Implements `MemoryReporter` for types that hold at most one reporter. `$reach` runs that reporter, or records why it
/// is not accessible.
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

/// The name of a value that may be inaccessible.
fn name_of<T: ?Sized>() -> &'static str {
    type_name::<T>()
}
