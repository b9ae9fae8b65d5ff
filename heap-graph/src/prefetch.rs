//! Having memory fetched before it is looked at: analyses jump through arrays much bigger than a processor's
//! caches, and know some steps before where they will land.

/// How far ahead, in elements, where each step is short.
pub(crate) const AHEAD: usize = 24;

/// Has the element fetched, if the processor is told how; nothing if there is none.
#[inline]
pub(crate) fn prefetch<T>(elements: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = elements.get(index) {
        #[allow(unsafe_code, reason = "the processor's instruction for it")]
        // SAFETY: a hint about an address, which is one of an element; nothing is read.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
                core::ptr::from_ref(element).cast(),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (elements, index);
}
