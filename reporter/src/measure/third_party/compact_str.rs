//! `compact_str`: exact; short and static text owns nothing.

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
        // On 32 bits a large capacity lies before the text.
        ops.enclosing(self.as_ptr(), layout)
    }
}
