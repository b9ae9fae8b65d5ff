//! Fetches memory before it is read: analyses jump through arrays much bigger than a processor's caches, and know
//! some steps ahead where they will read.

/// The number of elements to fetch ahead in loops with short steps.
pub(crate) const AHEAD: usize = 24;

/// Asks the processor to fetch an element, if there is one at `index`. Does nothing on processors other than x86-64.
#[inline]
pub(crate) fn prefetch<T>(elements: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = elements.get(index) {
        #[allow(unsafe_code, reason = "calls the processor's instruction")]
        // SAFETY: the instruction needs SSE, which every x86-64 processor has. It reads nothing, so that any address is
        // allowed; this one comes from a reference.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
                core::ptr::from_ref(element).cast(),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (elements, index);
}
