//! `std::alloc::System`: the C library's malloc on Unix.

use core::alloc::Layout;
use std::alloc::System;

use super::{AllocatorStatistics, UsableSize};

#[allow(unsafe_code, reason = "asks the C library")]
// SAFETY: on the Unix systems named `System` is malloc, calloc, realloc and posix_memalign or
// aligned_alloc, whose blocks the C library can be asked about; elsewhere the layout is the answer.
unsafe impl UsableSize for System {
    #[inline]
    unsafe fn usable_size(&self, pointer: *const u8, layout: Layout) -> usize {
        #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
        {
            let _ = layout;
            // SAFETY: the caller promises a live block of `System`, which is the C library's.
            unsafe { libc::malloc_usable_size(pointer.cast_mut().cast()) }
        }
        #[cfg(any(target_os = "macos", target_os = "ios"))]
        {
            let _ = layout;
            // SAFETY: the caller promises a live block of `System`, which is the C library's.
            unsafe { libc::malloc_size(pointer.cast()) }
        }
        #[cfg(not(any(
            target_os = "linux",
            target_os = "android",
            target_os = "freebsd",
            target_os = "macos",
            target_os = "ios"
        )))]
        {
            let _ = pointer;
            layout.size()
        }
    }

    fn statistics(&self) -> AllocatorStatistics {
        let Some(info) = crate::platform::c_heap() else { return AllocatorStatistics::default() };
        AllocatorStatistics {
            committed: Some(info.committed),
            mapped: None,
            overhead: Some(info.committed.saturating_sub(info.allocated)),
        }
    }

    fn purge(&self) {
        crate::platform::trim_c_heap();
    }
}
