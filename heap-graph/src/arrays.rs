//! Large arrays on huge pages. Analyses jump through arrays of hundreds of megabytes. With pages of 4 KiB, a processor
//! then spends more time on translating addresses than on reading the arrays.
//!
//! Only this module of the crate names a system: Linux gives huge pages to a program that asks for them; on other
//! systems an array stays as it is. An allocator gives arrays of this size a mapping of their own (glibc does so at
//! the latest from 32 MiB), so the advice ends with the array.

/// The size in bytes from which an array gets huge pages.
#[cfg(target_os = "linux")]
const LARGE: usize = 32 << 20;

/// Asks for huge pages for a large array; a small one stays as it is. Call it before any element is written: pages
/// that already exist stay small.
pub(crate) fn huge<T>(mut array: Vec<T>) -> Vec<T> {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        let bytes = array.capacity() * size_of::<T>();
        if bytes >= LARGE {
            let start = array.as_mut_ptr().cast::<u8>();
            let skipped = start.align_offset(PAGE);
            let length = (bytes - skipped) / PAGE * PAGE;
            // SAFETY: the array owns these bytes; the range leaves out its first part of a page. The advice changes
            // no content: the system may take it or not.
            #[allow(unsafe_code, reason = "the system call's interface")]
            unsafe {
                libc::madvise(start.wrapping_add(skipped).cast(), length, libc::MADV_HUGEPAGE);
            }
        }
    }
    array
}

/// An empty array in the memory of `array`, if the elements of both have the same size. The system must clear new
/// memory, which takes longer than most loops over it.
pub(crate) fn reuse<T, U>(mut array: Vec<T>) -> Vec<U> {
    array.clear();
    // The standard library collects the elements of a `Vec` in place.
    array.into_iter().map(|_| unreachable!("it is empty")).collect()
}
