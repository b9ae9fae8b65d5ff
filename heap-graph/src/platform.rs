//! The requests to the system that not every system has: only this module names one.

/// Asks Linux for huge pages for the memory of an array; other systems ignore the request.
pub(crate) fn request_huge_pages<T>(array: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let bytes = array.capacity() * size_of::<T>();
        let start = array.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE).min(bytes);
        let length = (bytes - skipped) / PAGE * PAGE;
        // SAFETY: the array owns these bytes; the range leaves out its first part of a page. The advice changes no
        // content: the system may take it or not.
        #[allow(unsafe_code, reason = "the system call's interface")]
        unsafe {
            libc::madvise(start.wrapping_add(skipped).cast(), length, libc::MADV_HUGEPAGE);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = array;
}
