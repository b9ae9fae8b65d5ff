//! The weak pointers of `Rc` and `Arc`.
//!
//! The strong pointers own the block. Once they are gone, weak pointers keep it, without its
//! value; what is sure of it then are the two counts at its start, which are counted once. The
//! room of the value cannot be told without a reference to a value that is gone, so it is
//! recorded as not seen; a table of live blocks knows the whole.

use core::alloc::Layout;
use std::{rc, sync};

use crate::layout::shared::before;
use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;
use crate::skipped::SkipReason;

macro_rules! weak_pointer {
    ($($module:ident),*) => {$(
        /// Nothing while a strong pointer owns the block; else what is sure of it, once.
        impl<T: ?Sized> MallocSizeOf for $module::Weak<T> {
            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                let known_by = before(self.as_ptr());
                if self.strong_count() != 0 {
                    return ops.points_to(known_by);
                }
                // All weak pointers without a block are at the same address.
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
