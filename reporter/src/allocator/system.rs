//! `std::alloc::System`: the C library's malloc on Unix.

use core::alloc::Layout;
use std::alloc::System;

use super::{AllocatorStatistics, CUsableSize, UsableSize};
use crate::platform;

#[allow(unsafe_code, reason = "asks the C library")]
// SAFETY: on the systems where `platform` asks the C library, `System` is malloc, calloc, realloc and
// posix_memalign or aligned_alloc; elsewhere the layout is the answer.
unsafe impl UsableSize for System {
    #[inline]
    unsafe fn usable_size(&self, pointer: *const u8, layout: Layout) -> usize {
        // SAFETY: the caller promises a live block of `System`, which is the C library's.
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
