//! The weak pointers of `Rc` and `Arc`.
//!
//! While strong pointers exist, they own the block. After the last strong pointer, the value is dropped, and weak
//! pointers keep the block. Then the walk can access only the two counts at the block's start, and a collection counts
//! them once. The size of the value is unknown without a reference to the value, so the walk records the value as
//! skipped. An engine with a table of live blocks returns the size of the whole block.

use core::alloc::Layout;
use std::{rc, sync};

use memory_report::SkipReason;

use crate::measure::layout::shared::before;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

macro_rules! weak_pointer {
    ($($module:ident),*) => {$(
        /// Counts 0 bytes while a strong pointer owns the block. Otherwise adds the size of the two reference counts,
        /// once for each block.
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
