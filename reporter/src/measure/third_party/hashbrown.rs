//! `hashbrown`: computed, also after removals; a table does not give access to the start of its block.

use core::alloc::Layout;
use core::hash::{BuildHasher, Hash};

use hashbrown::{HashMap, HashSet, HashTable};

use super::table::table;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

/// Counts the block of a table. `bytes` is the size of the block.
fn block<T, R: Reading>(inside: Option<&T>, bytes: usize, ops: &mut MallocSizeOfOps<R>) -> usize {
    let inside = inside.map_or(core::ptr::null(), |entry| &raw const *entry);
    // The groups of control bytes need an alignment of at most 16.
    let layout = Layout::from_size_align(bytes, align_of::<T>().max(16));
    ops.enclosing(inside, layout.unwrap_or(Layout::new::<()>()))
}

table!(
    [K: Eq + Hash, V, S: BuildHasher] HashMap<K, V, S>,
    [K, V],
    (&'a K, &'a V),
    |(key, value), ops| ops.key(key) + ops.value(value),
    |map, ops| block(map.keys().next(), map.allocation_size(), ops)
);
table!(
    [T: Eq + Hash, S: BuildHasher] HashSet<T, S>,
    [T],
    &'a T,
    |element, ops| ops.element(element),
    |set, ops| block(set.iter().next(), set.allocation_size(), ops)
);
table!(
    [T] HashTable<T>,
    [T],
    &'a T,
    |element, ops| ops.element(element),
    |table, ops| block(table.iter().next(), table.allocation_size(), ops)
);
