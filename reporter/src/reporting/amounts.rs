//! Distinguished amounts: single numbers of this process, without a collection.
//!
//! They correspond to Firefox's attributes of `nsIMemoryReporterManager`. The unit is bytes, unless the function's
//! description names another unit. An amount is `None` if the platform or the allocator does not provide it.

use crate::allocator::{self, declared};
use crate::{engine_abi, platform};

/// The address space in use.
pub fn vsize() -> Option<u64> {
    platform::statm().map(|statm| statm.vsize)
}

/// The physical memory in use, including shared pages.
pub fn resident() -> Option<u64> {
    platform::statm().map(|statm| statm.resident)
}

/// The largest value of [`resident`] so far.
pub fn resident_peak() -> Option<u64> {
    platform::resident_peak()
}

/// The physical memory that only this process uses. The system would get it back if the process ended.
///
/// The call walks the page tables. The result does not include private huge pages of hugetlbfs.
pub fn resident_unique() -> Option<u64> {
    platform::resident_unique()
}

/// The bytes of a mapping that are in physical memory, as seen from this process: the pages that the process has
/// touched, or that the kernel mapped ahead, and that are not swapped out. Shared pages count fully. A page that the
/// mapping covers only partly also counts fully, so pass the whole mapping.
///
/// The call does not read the mapping. It reads 8 bytes from the kernel for each page: 2 MiB for a mapping of 1 GiB.
///
/// [`Reports::mapped`](crate::Reports::mapped) reports it.
pub fn resident_of<T>(mapping: &[T]) -> Option<u64> {
    let range = mapping.as_ptr_range();
    platform::resident_in(range.start.addr()..range.end.addr())
}

/// The number of page faults that waited for a disk.
pub fn page_faults_hard() -> Option<u64> {
    platform::page_faults().map(|faults| faults.hard)
}

/// The number of page faults that did not wait for a disk.
pub fn page_faults_soft() -> Option<u64> {
    platform::page_faults().map(|faults| faults.soft)
}

/// The usable bytes of all live blocks of the declared allocator, including slop. Without a declared allocator, the
/// usable bytes of all blocks that DMD records; `None` if DMD does not record every block.
pub fn heap_allocated() -> Option<u64> {
    allocator::heap_allocated_counter().map(|bytes| bytes as u64).or_else(engine_abi::heap)
}

/// The bytes that the C library's malloc has allocated, including headers and cached free chunks.
pub fn system_heap_allocated() -> Option<u64> {
    platform::c_heap().map(|heap| heap.allocated)
}

/// The allocator's overhead as a fraction of its committed memory, in hundredths of a percent.
pub fn heap_overhead_fraction() -> Option<u64> {
    let statistics = declared()?.statistics();
    let (overhead, committed) = (statistics.overhead?, statistics.committed?);
    (committed > 0).then(|| (u128::from(overhead) * 10_000 / u128::from(committed)) as u64)
}

/// Whether sizes include the bytes that the allocator adds by rounding up. True if the program declared an allocator.
pub fn has_malloc_usable_size() -> bool {
    declared().is_some()
}
