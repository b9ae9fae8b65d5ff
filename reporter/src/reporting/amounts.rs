//! Distinguished amounts: single numbers of this process, without a collection.
//!
//! Firefox's attributes of `nsIMemoryReporterManager`. The unit is bytes unless the function says otherwise; the amount
//! is `None` if the platform or the allocator does not know it.

use crate::allocator::{self, declared};
use crate::{engine_abi, platform};

/// Address space in use.
pub fn vsize() -> Option<u64> {
    platform::statm().map(|statm| statm.vsize)
}

/// Physical memory in use, shared pages included.
pub fn resident() -> Option<u64> {
    platform::statm().map(|statm| statm.resident)
}

/// The largest [`resident`] so far.
pub fn resident_peak() -> Option<u64> {
    platform::resident_peak()
}

/// Physical memory that only this process uses: the system would get it back if the process ended.
///
/// It costs a walk over the page tables, and lacks private huge pages of hugetlbfs.
pub fn resident_unique() -> Option<u64> {
    platform::resident_unique()
}

/// The bytes of a mapping that are in physical memory, as this process sees them: the pages that it has touched, or that
/// the kernel mapped ahead, and that were not swapped out. Shared pages count whole. Each page that the mapping touches
/// counts whole too, so give the whole mapping, not a part of a page.
///
/// It never reads the mapping, and reads 8 bytes of the kernel for each page: 2 MiB for a mapping of 1 GiB.
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

/// Usable bytes of all live blocks of the declared allocator, slop included. If the program declares none, of all
/// blocks that DMD records, while DMD is on.
pub fn heap_allocated() -> Option<u64> {
    allocator::heap_allocated_counter().map(|bytes| bytes as u64).or_else(engine_abi::heap)
}

/// The bytes that the C library's malloc has allocated, headers and cached free chunks included.
pub fn system_heap_allocated() -> Option<u64> {
    platform::c_heap().map(|heap| heap.allocated)
}

/// The allocator's overhead as a fraction of its committed memory, in hundredths of a per cent.
pub fn heap_overhead_fraction() -> Option<u64> {
    let statistics = declared()?.statistics();
    let (overhead, committed) = (statistics.overhead?, statistics.committed?);
    (committed > 0).then(|| (u128::from(overhead) * 10_000 / u128::from(committed)) as u64)
}

/// Whether sizes include the bytes by which the allocator rounds up: whether the program declared an allocator.
pub fn has_malloc_usable_size() -> bool {
    declared().is_some()
}
