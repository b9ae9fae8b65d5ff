//! Support for `mimalloc::MiMalloc`.

use core::alloc::Layout;
use core::ptr::null_mut;

use mimalloc::MiMalloc;

use super::{AllocatorStatistics, UsableSize};

#[allow(unsafe_code, reason = "calls mimalloc")]
// SAFETY: `MiMalloc` allocates every block with mimalloc, and mimalloc stores the size of each block.
unsafe impl UsableSize for MiMalloc {
    #[inline]
    unsafe fn usable_size(&self, pointer: *const u8, _layout: Layout) -> usize {
        // SAFETY: the caller guarantees a live block of `MiMalloc`, which allocated it with mimalloc.
        unsafe { libmimalloc_sys::mi_usable_size(pointer.cast()) }
    }

    fn statistics(&self) -> AllocatorStatistics {
        let mut committed = 0;
        // SAFETY: `committed` is a `usize` of this frame to which mimalloc may write; it skips null pointers.
        unsafe {
            libmimalloc_sys::mi_process_info(
                null_mut(),
                null_mut(),
                null_mut(),
                null_mut(),
                null_mut(),
                &mut committed,
                null_mut(),
                null_mut(),
            );
        }
        let used = super::heap_allocated_counter().unwrap_or(0);
        AllocatorStatistics {
            committed: Some(committed as u64),
            mapped: None,
            overhead: Some(committed.saturating_sub(used) as u64),
        }
    }

    fn purge(&self) {
        // SAFETY: `mi_collect` has no precondition.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}
