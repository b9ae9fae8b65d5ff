//! The crate `indexmap`: a vector of entries, and a hash table of indices into it.
//!
//! `capacity()` returns the smaller of the two capacities. The capacities differ little: either the vector and the
//! table were made for the same number of entries, or the vector has grown to the capacity of the table.

use core::alloc::Layout;

use crate::measure::layout::hash_table::TableProbe;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

/// An entry. It is `repr(Rust)` like the original, so that the compiler gives both the same layout.
#[allow(dead_code, reason = "only its layout is used")]
struct IndexBucket<K, V> {
    hash: usize,
    key: K,
    value: V,
}

/// The bytes of both blocks of a map. `inside` points into the entries, or is null if no such address is known.
pub(crate) fn blocks<K, V, I: ?Sized, R: Reading>(
    capacity: usize,
    inside: *const I,
    ops: &mut MallocSizeOfOps<R>,
) -> usize {
    let entries = Layout::array::<IndexBucket<K, V>>(capacity).unwrap_or(Layout::new::<()>());
    let indices = TableProbe::new(capacity).block(Layout::new::<usize>());
    // Count the block of the entries last: the parts that the walk visits next are inside this block.
    ops.enclosing(core::ptr::null::<usize>(), indices) + ops.enclosing(inside, entries)
}
