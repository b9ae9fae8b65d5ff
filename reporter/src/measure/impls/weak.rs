//! The weak pointers of `Rc` and `Arc`.
//!
//! The strong pointers own the block. Once they are gone, weak pointers keep it, without its value. Then only the two
//! counts at its start are certain, which a collection counts once. The size of the value would need a reference to a
//! value that is gone, so the walk records it as skipped; a table of live blocks knows the whole block.

use core::alloc::Layout;
use std::{rc, sync};

use memory_report::SkipReason;

use crate::measure::layout::shared::before;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

macro_rules! weak_pointer {
    ($($module:ident),*) => {$(
        /// Nothing while a strong pointer owns the block; otherwise the certain part of it, once.
        impl<T: ?Sized> MallocSizeOf for $module::Weak<T> {
            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                let known_by = before(self.as_ptr());
                if self.strong_count() != 0 {
                    return ops.points_to(known_by);
                }
                // All weak pointers without a block have the same address.
                let without_block = self.as_ptr().cast() == $module::Weak::<()>::new().as_ptr();
                if without_block || !ops.first_visit(known_by) {
                    return 0;
                }
                ops.skip::<Self>(SkipReason::Opaque);
                ops.enclosing(known_by, Layout::new::<[usize; 2]>())
            }
        }
    )*};
}
weak_pointer!(rc, sync);
