//! `compact_str`: computed; short and static text owns no heap.

use core::alloc::Layout;

use compact_str::CompactString;

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

impl MallocSizeOf for CompactString {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if !self.is_heap_allocated() {
            return 0;
        }
        let Ok(layout) = Layout::array::<u8>(self.capacity()) else { return 0 };
        // On 32-bit systems, a large capacity is stored before the text.
        ops.enclosing(self.as_ptr(), layout)
    }
}
