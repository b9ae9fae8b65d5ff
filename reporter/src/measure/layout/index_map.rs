//! The crate `indexmap`: a vector of entries, and a hash table of indices into it.
//!
//! `capacity()` gives the smaller of the two. Both follow each other: they are made for the same number of entries, or
//! the vector has grown to the capacity of the table.

use core::alloc::Layout;

use crate::measure::layout::hash_table::TableProbe;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

/// An entry; `repr(Rust)` like the original, so that the compiler gives both the same layout.
#[allow(dead_code, reason = "only its layout is of use")]
struct IndexBucket<K, V> {
    hash: usize,
    key: K,
    value: V,
}

/// The bytes of both blocks of a map; `inside` points into its entries, if that is known.
pub(crate) fn blocks<K, V, I: ?Sized, R: Reading>(
    capacity: usize,
    inside: *const I,
    ops: &mut MallocSizeOfOps<R>,
) -> usize {
    let entries = Layout::array::<IndexBucket<K, V>>(capacity).unwrap_or(Layout::new::<()>());
    let indices = TableProbe::new(capacity).block(Layout::new::<usize>());
    // The entries come last, since the parts that follow lie in them.
    ops.enclosing(core::ptr::null::<usize>(), indices) + ops.enclosing(inside, entries)
}
