//! A hint to the processor, so that a walk that does more than add finds the next blocks in the cache.
//!
//! A mere sum is short enough for the processor to look far ahead by itself. A walk that keeps a tree is not, and would
//! wait for every block. Blocks that a walk reaches one after the other often lie side by side, since they were
//! allocated one after the other.

/// The distance behind a block, in bytes: 8 lines of 64 bytes.
const AHEAD: usize = 512;

/// Prefetches memory a little behind `block`. It reads nothing, so any address is valid.
#[inline(always)]
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code, reason = "the processor's hint is declared unsafe"))]
pub(crate) fn behind<T: ?Sized>(block: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let ahead = (&raw const *block).cast::<i8>().wrapping_add(AHEAD);
        // SAFETY: a prefetch reads nothing and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (block, AHEAD);
}
