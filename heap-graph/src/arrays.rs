//! Puts large arrays on huge pages. Analyses access arrays of hundreds of megabytes at random places. With pages of 4
//! KiB, a processor then spends more time on translating addresses than on reading the arrays.
//!
//! glibc allocates an array of this size in its own mapping, so the request for huge pages ends with the array. Other
//! allocators may reuse the mapping, with its huge pages.

use crate::platform::request_huge_pages;

/// The size in bytes from which an array gets huge pages.
const LARGE: usize = 32 << 20;

/// Requests huge pages for a large array; returns a small array unchanged. Call it before any element is written:
/// pages that already exist stay small.
pub(crate) fn huge<T>(mut array: Vec<T>) -> Vec<T> {
    if array.capacity() * size_of::<T>() >= LARGE {
        request_huge_pages(&mut array);
    }
    array
}

/// An empty array in the memory of `array`, if `T` and `U` have the same size. Reusing memory saves time: the system
/// must clear new memory, which takes longer than most loops over it.
pub(crate) fn reuse<T, U>(mut array: Vec<T>) -> Vec<U> {
    array.clear();
    // The standard library reuses the memory of a `Vec` when it collects the elements of the `Vec`'s own iterator.
    array.into_iter().map(|_| unreachable!("the array is empty")).collect()
}
