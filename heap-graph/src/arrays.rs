//! Large arrays on huge pages. Analyses jump through arrays of hundreds of megabytes. With pages of 4 KiB, a processor
//! then spends more time on translating addresses than on reading the arrays.
//!
//! glibc gives arrays of this size a mapping of their own, so the request ends with the array. Other allocators may use
//! the mapping again, with its huge pages.

use crate::platform::request_huge_pages;

/// The size in bytes from which an array gets huge pages.
const LARGE: usize = 32 << 20;

/// Asks for huge pages for a large array; a small one stays as it is. Call it before any element is written: pages
/// that already exist stay small.
pub(crate) fn huge<T>(mut array: Vec<T>) -> Vec<T> {
    if array.capacity() * size_of::<T>() >= LARGE {
        request_huge_pages(&mut array);
    }
    array
}

/// An empty array in the memory of `array`, if the elements of both have the same size. The system must clear new
/// memory. That takes longer than most loops over it.
pub(crate) fn reuse<T, U>(mut array: Vec<T>) -> Vec<U> {
    array.clear();
    // The standard library collects the elements of a `Vec` in place.
    array.into_iter().map(|_| unreachable!("it is empty")).collect()
}
