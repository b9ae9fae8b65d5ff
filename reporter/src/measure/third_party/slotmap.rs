//! `slotmap`: computed. A `DenseSlotMap` counts at least the keys, values and slots in use. A `SparseSecondaryMap`
//! counts at least the smallest possible table.

use core::alloc::Layout;
use core::hash::BuildHasher;
use core::mem::ManuallyDrop;
use core::num::NonZeroU32;
use core::ptr::null;

use slotmap::{DenseSlotMap, Key, KeyData, SecondaryMap, SlotMap, SparseSecondaryMap};

use crate::measure::impls::plain::plain;
use crate::measure::impls::sequence::elements;
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

/// Implements the traits for a map. The default counts one block of slots, whose first slot contains no value. For a
/// map with other blocks, `$own` counts the blocks.
macro_rules! map {
    ($map:ident<K, V $(, $hasher:ident: $bound:path)?>, $self:ident, $ops:ident => $own:expr) => {
        impl<K: Key, V: MallocSizeOf $(, $hasher: $bound)?> MallocSizeOf for $map<K, V $(, $hasher)?> {
            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                if V::NEEDS_WALK || ops.wants_names() {
                    self.size_of_each(ops, V::size_of_excluding_this)
                } else {
                    self.shallow_size_of_excluding_this(ops)
                }
            }
        }

        impl<K: Key, V $(, $hasher: $bound)?> MallocSizeOfEach for $map<K, V $(, $hasher)?> {
            type Each<'a>
                = &'a V
            where
                Self: 'a;

            #[inline]
            fn size_of_each<'a, R: Reading>(
                &'a self,
                ops: &mut MallocSizeOfOps<R>,
                each: impl FnMut(&'a V, &mut MallocSizeOfOps<R>) -> usize,
            ) -> usize {
                self.shallow_size_of_excluding_this(ops) + elements(self.values(), ops, each)
            }

            #[inline]
            fn shallow_size_of_excluding_this<R: Reading>(&$self, $ops: &mut MallocSizeOfOps<R>) -> usize {
                $own
            }
        }
    };
}
map!(SlotMap<K, V>, self, ops => {
    ops.enclosing(inside(self.values()), array::<UnionSlot<BasicContent<V>>>(self.capacity() + 1))
});
map!(SecondaryMap<K, V>, self, ops => {
    ops.enclosing(inside(self.values()), array::<SecondarySlot<V>>(self.capacity() + 1))
});
map!(DenseSlotMap<K, V>, self, ops => {
    // The values are last, since the parts that the walk visits next are inside them.
    ops.enclosing(null::<K>(), array::<K>(self.capacity()))
        + ops.enclosing(null::<[u32; 2]>(), array::<[u32; 2]>(self.len() + 1))
        + ops.enclosing(inside(self.values()), array::<V>(self.len()))
});
map!(SparseSecondaryMap<K, V, S: BuildHasher>, self, ops => {
    let mut table = TableProbe::new(self.capacity());
    self.values().for_each(|value| table.entry(value));
    ops.enclosing(inside(self.values()), table.block(Layout::new::<(u32, UnionSlot<V>)>()))
});
