//! Prefetches memory. Analyses access arrays much larger than a processor's caches at random places. They know these
//! places some steps in advance.

/// The number of elements to prefetch ahead in loops with short steps.
pub(crate) const AHEAD: usize = 24;

/// Prefetches the element at `index`, if it exists. Does nothing on processors other than x86-64.
#[inline]
pub(crate) fn prefetch<T>(elements: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = elements.get(index) {
        #[allow(unsafe_code, reason = "calls the processor's instruction")]
        // SAFETY: the instruction needs SSE, which every x86-64 processor has. It does not read, so any address is
        // allowed; this address is from a reference.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
                core::ptr::from_ref(element).cast(),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (elements, index);
}
