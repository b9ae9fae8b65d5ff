//! Large arrays on huge pages. Analyses jump through arrays of hundreds of megabytes; with pages of 4 KiB a processor
//! then spends more time on finding out where the pages are than on what is in them.
//!
//! This is the one module of the crate that names a system: Linux gives huge pages to who asks, elsewhere an array
//! stays as it is. An allocator maps arrays of this size on their own (glibc does so at the latest from 32 MiB), so
//! that the advice ends with the array.

/// Bytes from which an array asks for huge pages.
#[cfg(target_os = "linux")]
const LARGE: usize = 32 << 20;

/// Asks for huge pages for an array none of whose elements was touched yet; a small one stays as it is.
pub(crate) fn huge<T>(mut array: Vec<T>) -> Vec<T> {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let bytes = array.capacity() * size_of::<T>();
        if bytes >= LARGE {
            let start = array.as_mut_ptr().cast::<u8>();
            let skipped = start.align_offset(PAGE);
            let length = (bytes - skipped) / PAGE * PAGE;
            // SAFETY: the array owns these bytes, of which its first page's rest is left out; the advice changes
            // no content, and whether it is taken changes nothing but the time.
            #[allow(unsafe_code, reason = "the system call's interface")]
            unsafe {
                libc::madvise(start.wrapping_add(skipped).cast(), length, libc::MADV_HUGEPAGE);
            }
        }
    }
    array
}

/// An empty array in the memory of one that is done with, where the elements of both take as much: memory that the
/// system gives anew has to be cleared, which takes longer than most loops over it.
pub(crate) fn reuse<T, U>(mut array: Vec<T>) -> Vec<U> {
    array.clear();
    // The standard library collects in place what comes from an array.
    array.into_iter().map(|_| unreachable!("it is empty")).collect()
}
