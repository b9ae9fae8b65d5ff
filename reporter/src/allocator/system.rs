//! Support for `std::alloc::System`: the C library's malloc on Unix.

use core::alloc::Layout;
use std::alloc::System;

use crate::platform;

use super::{AllocatorStatistics, CUsableSize, UsableSize};

#[allow(unsafe_code, reason = "calls the C library")]
// SAFETY: if `platform` calls the C library, std implements `System` by malloc, calloc, realloc and posix_memalign or
// aligned_alloc, so each block belongs to the C library. On other systems `platform` returns the size in the layout.
unsafe impl UsableSize for System {
    #[inline]
    unsafe fn usable_size(&self, pointer: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller guarantees a live block of `System`, which std allocated with the C library's malloc.
        unsafe { platform::c_usable_size(pointer, layout) }
    }

    fn c_function(&self) -> Option<CUsableSize> {
        platform::C_USABLE_SIZE
    }

    fn statistics(&self) -> AllocatorStatistics {
        let Some(heap) = platform::c_heap() else { return AllocatorStatistics::default() };
        AllocatorStatistics {
            committed: Some(heap.committed),
            mapped: None,
            overhead: Some(heap.committed.saturating_sub(heap.allocated)),
        }
    }

    fn purge(&self) {
        platform::trim_c_heap();
    }
}
