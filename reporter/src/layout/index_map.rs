//! The crate `indexmap`: a vector of entries, and a hash table of indices into it.
//!
//! `capacity()` tells the lesser of the two. They are in step: both are made for the same number
//! of entries, or the vector has grown to what the table holds.

use core::alloc::Layout;

use crate::layout::hash_table::Table;
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;

/// An entry; as `repr(Rust)` as the original, so that the compiler lays both out alike.
#[allow(dead_code, reason = "only its layout is of use")]
struct Bucket<K, V> {
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
    let entries = Layout::array::<Bucket<K, V>>(capacity).unwrap_or(Layout::new::<()>());
    let indices = Table::new(capacity).block::<usize>();
    // The entries last, since what is told next lies in them.
    ops.enclosing(core::ptr::null::<usize>(), indices) + ops.enclosing(inside, entries)
}
