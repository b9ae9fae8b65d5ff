//! `bytes`: at least. A `Bytes` with one owner counts its accessible bytes, and a `BytesMut` its share of the buffer.
//! A `Bytes` with several owners looks like a static `Bytes` and is recorded as skipped. A `Bytes` made by
//! `Bytes::from_owner` counts as heap.

use core::alloc::Layout;

use bytes::{Bytes, BytesMut};
use memory_report::SkipReason;

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

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
