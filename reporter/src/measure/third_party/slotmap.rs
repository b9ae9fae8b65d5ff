//! `slotmap`: computed. A `DenseSlotMap` counts at least the keys, values and slots in use. A `SparseSecondaryMap`
//! counts at least the smallest possible table.

use core::alloc::Layout;
use core::hash::BuildHasher;
use core::mem::ManuallyDrop;
use core::num::NonZeroU32;
use core::ptr::null;

use slotmap::{DenseSlotMap, Key, KeyData, SecondaryMap, SlotMap, SparseSecondaryMap};

use crate::measure::impls::plain::plain;
use crate::measure::impls::sequence::sequence;
use crate::measure::layout::hash_table::TableProbe;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

plain!([] KeyData, [] slotmap::DefaultKey);

/// A copy of the crate's own slots, so that the compiler gives both the same layout.
#[allow(dead_code, reason = "only its layout is used")]
struct UnionSlot<C> {
    content: C,
    version: u32,
}

#[allow(dead_code, reason = "only its layout is used")]
union BasicContent<T> {
    value: ManuallyDrop<T>,
    next_free: u32,
}

#[allow(dead_code, reason = "only its layout is used")]
enum SecondarySlot<T> {
    Occupied { value: T, version: NonZeroU32 },
    Vacant,
}

fn array<T>(capacity: usize) -> Layout {
    // A live array of this capacity has this layout, so the layout is valid.
    Layout::array::<T>(capacity).unwrap_or(Layout::new::<()>())
}

fn inside<'a, T: 'a>(mut values: impl Iterator<Item = &'a T>) -> *const T {
    values.next().map_or(null(), |value| &raw const *value)
}

sequence!([K: Key, V] SlotMap<K, V>, V, |map| map.values(), |ops| {
    // The first slot contains no value.
    ops.enclosing(inside(map.values()), array::<UnionSlot<BasicContent<V>>>(map.capacity() + 1))
});
sequence!([K: Key, V] SecondaryMap<K, V>, V, |map| map.values(), |ops| {
    // The first slot contains no value.
    ops.enclosing(inside(map.values()), array::<SecondarySlot<V>>(map.capacity() + 1))
});
sequence!([K: Key, V] DenseSlotMap<K, V>, V, |map| map.values(), |ops| {
    // Count the block of the values last: the parts that the walk visits next are inside this block.
    ops.enclosing(null::<K>(), array::<K>(map.capacity()))
        + ops.enclosing(null::<[u32; 2]>(), array::<[u32; 2]>(map.len() + 1))
        + ops.enclosing(inside(map.values()), array::<V>(map.len()))
});
sequence!([K: Key, V, S: BuildHasher] SparseSecondaryMap<K, V, S>, V, |map| map.values(), |ops| {
    let mut table = TableProbe::new(map.capacity());
    map.values().for_each(|value| table.entry(value));
    ops.enclosing(inside(map.values()), table.block(Layout::new::<(u32, UnionSlot<V>)>()))
});
