//! `bumpalo`: computed; counts all chunks of an arena, but not the heap of the values in it.

use core::alloc::Layout;

use bumpalo::Bump;

use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

impl<const MIN_ALIGN: usize> MallocSizeOf for Bump<MIN_ALIGN> {
    #[allow(unsafe_code, reason = "calls the arena's unsafe iterator over its chunks")]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        // The arena gives access only to the sum of all chunks and to the used part of each chunk. The first chunk
        // gets the difference.
        let mut rest = self.allocated_bytes_including_metadata();
        // SAFETY: the arena is not `Sync`, and this thread does not allocate in it while the iterator lives.
        let chunks = unsafe { self.iter_allocated_chunks_raw() };
        let mut chunks: Vec<(*mut u8, usize)> = chunks.collect();
        chunks.iter().skip(1).for_each(|(_, used)| rest -= used);
        if let Some(first) = chunks.first_mut() {
            first.1 = rest;
        }
        let layout = |size| Layout::from_size_align(size, 1).unwrap_or(Layout::new::<()>());
        chunks.into_iter().map(|(inside, size)| ops.enclosing(inside, layout(size))).sum()
    }
}
