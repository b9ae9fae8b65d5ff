//! Distinguished amounts: single numbers of this process, without a collection.
//!
//! Firefox's attributes of `nsIMemoryReporterManager`. Bytes unless said otherwise; `None` where
//! the platform or the allocator does not tell.

use crate::allocator::{self, declared};
use crate::{bridge, platform};

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

/// Physical memory that only this process uses: what the system would get back if it ended.
///
/// Costs a walk over the page tables; private huge pages of hugetlbfs are not in it.
pub fn resident_unique() -> Option<u64> {
    platform::resident_unique()
}

/// Page faults that had to wait for a disk; a count.
pub fn page_faults_hard() -> Option<u64> {
    platform::page_faults().map(|faults| faults.hard)
}

/// Page faults that did not; a count.
pub fn page_faults_soft() -> Option<u64> {
    platform::page_faults().map(|faults| faults.soft)
}

/// Usable bytes of all live blocks of the declared allocator, slop included. If none is declared, of all
/// blocks that DMD records, while it does.
pub fn heap_allocated() -> Option<u64> {
    allocator::heap_allocated_counter().map(|bytes| bytes as u64).or_else(bridge::heap)
}

/// Bytes that the C library's malloc has handed out, headers and cached free chunks included.
pub fn system_heap_allocated() -> Option<u64> {
    platform::c_heap().map(|heap| heap.allocated)
}

/// The allocator's overhead as a fraction of what it committed, in hundredths of a per cent.
pub fn heap_overhead_fraction() -> Option<u64> {
    let statistics = declared()?.statistics();
    let (overhead, committed) = (statistics.overhead?, statistics.committed?);
    (committed > 0).then(|| (u128::from(overhead) * 10_000 / u128::from(committed)) as u64)
}

/// Whether sizes include the allocator's rounding: whether an allocator was declared.
pub fn has_malloc_usable_size() -> bool {
    declared().is_some()
}
