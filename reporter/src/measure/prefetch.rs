//! Prefetches memory, so that a walk with much work for each block finds the next blocks in the cache.
//!
//! The code of a plain sum is short enough for the processor to look far ahead by itself. The code of a walk that
//! builds a tree is longer, and would wait for every block. Blocks that a walk reaches one after the other are often
//! adjacent, since they were allocated one after the other.

/// The distance from a block's start, in bytes: 8 lines of 64 bytes.
const AHEAD: usize = 512;

/// Prefetches memory a little after `block`. It does not read, so any address is valid.
#[inline(always)]
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code, reason = "the processor's hint is declared unsafe"))]
pub(crate) fn behind<T: ?Sized>(block: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let ahead = (&raw const *block).cast::<i8>().wrapping_add(AHEAD);
        // SAFETY: a prefetch does not read and never faults, for any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (block, AHEAD);
}
