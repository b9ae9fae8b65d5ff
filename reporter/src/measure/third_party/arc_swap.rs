//! `arc-swap`: computed; counts the block of the current pointer once, as for any `Arc`.

use arc_swap::{ArcSwapAny, Guard, RefCnt};

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

impl<T: RefCnt + MallocSizeOf> MallocSizeOf for ArcSwapAny<T> {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.load().size_of_excluding_this(ops)
    }
}

impl<T: RefCnt + MallocSizeOf> MallocSizeOf for Guard<T> {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        (**self).size_of_excluding_this(ops)
    }
}
