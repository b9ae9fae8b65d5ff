//! `smol_str`: computed; long text is an `Arc<str>`, counted once.

use smol_str::SmolStr;

use crate::measure::layout::shared::{before, counted};
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

impl MallocSizeOf for SmolStr {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let text = self.as_str();
        if !self.is_heap_allocated() || !ops.first_visit(before(text)) {
            return 0;
        }
        ops.enclosing(text, counted(text).0)
    }
}
