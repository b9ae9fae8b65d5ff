//! Hash tables and B-trees.

#![allow(clippy::iter_over_hash_type, reason = "neither sums nor bounds depend on the order")]

use core::alloc::Layout;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::measure::block::Edge;
use crate::measure::layout::btree::{self, KeyPosition, TreeNodes};
use crate::measure::layout::hash_table::TableProbe;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::{MallocSizeOfOps, total};
use crate::measure::reading::Reading;

/// The bytes of the block of a hash table with these keys.
#[inline]
fn hash_table<'a, K: 'a, R: Reading>(
    capacity: usize,
    keys: impl Iterator<Item = &'a K>,
    entry: Layout,
    ops: &mut MallocSizeOfOps<R>,
) -> usize {
    let mut table = TableProbe::new(capacity);
    let mut inside: *const K = core::ptr::null();
    for key in keys {
        if inside.is_null() {
            inside = &raw const *key;
        }
        if table.is_sure() {
            break;
        }
        table.entry(key);
    }
    ops.enclosing(inside, table.block(entry))
}

/// Implements `MallocSizeOfEach` for a hash table with the entries `$each`. `$own` counts the table's own blocks.
macro_rules! each_entry {
    ([$($generics:tt)*] $type:ty, $each:ty, |$this:ident, $ops:ident| $own:expr) => {
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> MallocSizeOfEach for $type {
            type Each<'a>
                = $each
            where
                Self: 'a;

            #[inline]
            fn size_of_each<'a, R: Reading>(
                &'a self,
                ops: &mut MallocSizeOfOps<R>,
                mut each: impl FnMut($each, &mut MallocSizeOfOps<R>) -> usize,
            ) -> usize {
                self.shallow_size_of_excluding_this(ops)
                    + ops.contents(|ops| $crate::measure::ops::total(self.iter().map(|entry| each(entry, ops))))
            }

            #[inline]
            fn shallow_size_of_excluding_this<R: Reading>(&self, $ops: &mut MallocSizeOfOps<R>) -> usize {
                let $this = self;
                $own
            }
        }
    };
}
pub(crate) use each_entry;

impl<K: MallocSizeOf, V: MallocSizeOf, S> MallocSizeOf for HashMap<K, V, S> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if R::STEPS || R::NAMES {
            if K::NEEDS_WALK || V::NEEDS_WALK || ops.wants_names() {
                return self.size_of_each(ops, |(key, value), ops| ops.key(key) + ops.value(value));
            }
        } else if K::NEEDS_WALK || V::NEEDS_WALK {
            if let Some(bytes) = ops.on_fresh_stack(self, Self::size_of_excluding_this) {
                return bytes;
            }
            // Two passes: a single pass for the block and the entries takes 1.5 times as long.
            return self.shallow_size_of_excluding_this(ops)
                + total(self.iter().map(|(key, value)| ops.key(key) + ops.value(value)));
        }
        self.shallow_size_of_excluding_this(ops)
    }
}

self::each_entry!([K, V, S] HashMap<K, V, S>, (&'a K, &'a V), |map, ops| {
    hash_table(map.capacity(), map.keys(), Layout::new::<(K, V)>(), ops)
});

impl<T: MallocSizeOf, S> MallocSizeOf for HashSet<T, S> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if R::STEPS || R::NAMES {
            if T::NEEDS_WALK || ops.wants_names() {
                return self.size_of_each(ops, |element, ops| ops.element(element));
            }
        } else if T::NEEDS_WALK {
            if let Some(bytes) = ops.on_fresh_stack(self, Self::size_of_excluding_this) {
                return bytes;
            }
            return self.shallow_size_of_excluding_this(ops)
                + total(self.iter().map(|element| ops.element(element)));
        }
        self.shallow_size_of_excluding_this(ops)
    }
}

self::each_entry!([T, S] HashSet<T, S>, &'a T, |set, ops| {
    hash_table(set.capacity(), set.iter(), Layout::new::<T>(), ops)
});

/// The bytes of the node whose first key is `key`; 0 if the key is not the first key of a node.
#[inline(always)]
pub(crate) fn node<K, V, R: Reading>(nodes: &mut TreeNodes, key: &K, ops: &mut MallocSizeOfOps<R>) -> usize {
    match nodes.key(key) {
        KeyPosition::Nothing => 0,
        KeyPosition::Leaf => ops.enclosing(key, btree::leaf::<K, V>()),
        KeyPosition::Inner => ops.enclosing(key, btree::inner::<K, V>()),
    }
}

/// The bytes of all nodes of a B-tree, and of its entries, in key order.
#[inline]
fn b_tree<'a, K: 'a, V, Entry, R: Reading>(
    entries: impl Iterator<Item = (&'a K, Entry)>,
    ops: &mut MallocSizeOfOps<R>,
    mut each: impl FnMut(Entry, &mut MallocSizeOfOps<R>) -> usize,
) -> usize {
    let mut nodes = TreeNodes::new();
    let mut entries = Some(entries);
    ops.contents(|ops| {
        total(
            entries
                .take()
                .into_iter()
                .flatten()
                .map(|(key, entry)| node::<K, V, R>(&mut nodes, key, ops).saturating_add(each(entry, ops))),
        )
    })
}

impl<K: MallocSizeOf, V: MallocSizeOf> MallocSizeOf for BTreeMap<K, V> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.size_of_each(ops, |(key, value), ops| ops.part(Edge::Key, key) + ops.part(Edge::Value, value))
    }
}

#[diagnostic::do_not_recommend]
impl<K, V> MallocSizeOfEach for BTreeMap<K, V> {
    type Each<'a>
        = (&'a K, &'a V)
    where
        Self: 'a;

    #[inline]
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        each: impl FnMut((&'a K, &'a V), &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        b_tree::<K, V, _, R>(self.iter().map(|pair| (pair.0, pair)), ops, each)
    }
}

impl<T: MallocSizeOf> MallocSizeOf for BTreeSet<T> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.size_of_each(ops, |element, ops| ops.element(element))
    }
}

#[diagnostic::do_not_recommend]
impl<T> MallocSizeOfEach for BTreeSet<T> {
    type Each<'a>
        = &'a T
    where
        Self: 'a;

    #[inline]
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        each: impl FnMut(&'a T, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        b_tree::<T, (), _, R>(self.iter().map(|element| (element, element)), ops, each)
    }
}
