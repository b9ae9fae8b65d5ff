//! Support for `tikv_jemallocator::Jemalloc`.

use core::alloc::Layout;

use tikv_jemalloc_ctl::{epoch, stats};
use tikv_jemallocator::Jemalloc;

use super::{AllocatorStatistics, CUsableSize, UsableSize};

#[allow(unsafe_code, reason = "calls jemalloc")]
// SAFETY: `Jemalloc` allocates every block with jemalloc, and jemalloc stores the size of each block.
unsafe impl UsableSize for Jemalloc {
    #[inline]
    unsafe fn usable_size(&self, pointer: *const u8, _layout: Layout) -> usize {
        // SAFETY: the caller guarantees a live block of `Jemalloc`, which allocated it with jemalloc.
        unsafe { tikv_jemalloc_sys::malloc_usable_size(pointer.cast_mut().cast()) }
    }

    fn c_function(&self) -> Option<CUsableSize> {
        Some(tikv_jemalloc_sys::malloc_usable_size)
    }

    fn statistics(&self) -> AllocatorStatistics {
        // jemalloc updates its statistics only when a new epoch starts.
        if epoch::advance().is_err() {
            return AllocatorStatistics::default();
        }
        let bytes = |read: tikv_jemalloc_ctl::Result<usize>| read.ok().map(|n| n as u64);
        let resident = bytes(stats::resident::read());
        let allocated = bytes(stats::allocated::read());
        AllocatorStatistics {
            committed: resident,
            mapped: bytes(stats::mapped::read()),
            overhead: resident.zip(allocated).map(|(all, used)| all.saturating_sub(used)),
        }
    }

    fn purge(&self) {
        // 4096 is MALLCTL_ARENAS_ALL. "arena.<i>.purge" has neither an old nor a new value.
        // SAFETY: the name is a C string. All other arguments are null and 0, which mean "no value" to `mallctl`.
        unsafe {
            tikv_jemalloc_sys::mallctl(
                c"arena.4096.purge".as_ptr(),
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                0,
            );
        }
    }
}
