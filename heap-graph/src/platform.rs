//! Requests that only some systems support. Only this module names a system.

/// Requests huge pages for the memory of an array, on Linux. Other systems ignore the request.
pub(crate) fn request_huge_pages<T>(array: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let bytes = array.capacity() * size_of::<T>();
        let start = array.as_mut_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE).min(bytes);
        let length = (bytes - skipped) / PAGE * PAGE;
        // SAFETY: the array owns these bytes. The range leaves out the part of a page at the array's start. The
        // advice changes no contents: the system may follow or ignore it.
        #[allow(unsafe_code, reason = "the system call's interface")]
        unsafe {
            libc::madvise(start.wrapping_add(skipped).cast(), length, libc::MADV_HUGEPAGE);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = array;
}
