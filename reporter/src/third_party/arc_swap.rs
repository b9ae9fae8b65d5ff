//! `arc-swap`: exact; the pointer that is in it at the time, counted once as any `Arc`.

use arc_swap::{ArcSwapAny, Guard, RefCnt};

use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;

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
