//! `bytes`: at least; of a `Bytes` with one owner the bytes that it shows, of a `BytesMut` its
//! share of the buffer. A `Bytes` with several owners cannot be told from a static one and is
//! recorded as not seen; one made by `Bytes::from_owner` is taken for heap.

use core::alloc::Layout;

use bytes::{Bytes, BytesMut};

use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;
use crate::skipped::SkipReason;

impl MallocSizeOf for Bytes {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if self.is_empty() {
            return 0;
        }
        if !self.is_unique() {
            return ops.skip::<Self>(SkipReason::Opaque);
        }
        ops.enclosing(self.as_ptr(), Layout::for_value::<[u8]>(self))
    }
}

impl MallocSizeOf for BytesMut {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let Ok(layout) = Layout::array::<u8>(self.capacity()) else { return 0 };
        ops.enclosing(self.as_ptr(), layout)
    }
}
