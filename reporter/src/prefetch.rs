//! A hint to the processor, so that a walk that does more than add finds the next blocks in the cache.
//!
//! A bare sum is short enough for the processor to look far ahead by itself. A walk that keeps a tree is
//! not, and would wait for every block; blocks that are reached one after the other often lie so, too,
//! since they were allocated one after the other.

/// Bytes beyond a block that is looked at; 8 lines of 64 bytes.
const AHEAD: usize = 512;

/// Asks for the memory a little behind `block`, which is never read here: any address will do.
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
