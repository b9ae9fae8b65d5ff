//! `indexmap`: computed. After removals the size is "at least", since a part of either block may be hidden.

use indexmap::{IndexMap, IndexSet};

use super::table::table;
use crate::measure::layout::index_map;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

table!(
    [K, V, S] IndexMap<K, V, S>,
    [K, V],
    (&'a K, &'a V),
    |(key, value), ops| ops.key(key) + ops.value(value),
    |map, ops| index_map::blocks::<K, V, _, R>(map.capacity(), map.as_slice(), ops)
);
table!(
    [T, S] IndexSet<T, S>,
    [T],
    &'a T,
    |element, ops| ops.element(element),
    |set, ops| index_map::blocks::<T, (), _, R>(set.capacity(), set.as_slice(), ops)
);
