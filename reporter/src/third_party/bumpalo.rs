//! `bumpalo`: exact; all chunks of an arena. What the values in it own elsewhere is not seen.

use core::alloc::Layout;

use bumpalo::Bump;

use crate::malloc_size_of::MallocSizeOf;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;

impl<const MIN_ALIGN: usize> MallocSizeOf for Bump<MIN_ALIGN> {
    #[allow(unsafe_code, reason = "goes over the arena's chunks")]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        // Only the sum of all chunks is told, and the used part of each: the rest goes with the first.
        let mut rest = self.allocated_bytes_including_metadata();
        // SAFETY: nothing is allocated in the arena, which is not `Sync`, while the iterator lives.
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
