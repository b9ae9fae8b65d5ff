//! Hash tables and B-trees.

#![allow(clippy::iter_over_hash_type, reason = "neither sums nor bounds depend on the order")]

use core::alloc::Layout;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::measure::block::Edge;
use crate::measure::layout::btree::{self, Found, Nodes};
use crate::measure::layout::hash_table::Table;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::{MallocSizeOfOps, total};
use crate::measure::reading::Reading;

impl<K: MallocSizeOf, V: MallocSizeOf, S> MallocSizeOf for HashMap<K, V, S> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if K::NEEDS_WALK || V::NEEDS_WALK || ops.wants_names() {
            self.size_of_each(ops, |(key, value), ops| ops.key(key) + ops.value(value))
        } else {
            self.shallow_size_of_excluding_this(ops)
        }
    }
}

impl<K, V, S> MallocSizeOfEach for HashMap<K, V, S> {
    type Each<'a>
        = (&'a K, &'a V)
    where
        Self: 'a;

    #[inline]
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        mut each: impl FnMut((&'a K, &'a V), &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        let own = self.shallow_size_of_excluding_this(ops);
        own + ops.contents(|ops| {
            let mut bytes = 0_usize;
            for pair in self {
                bytes = bytes.saturating_add(each(pair, ops));
            }
            bytes
        })
    }

    #[inline]
    fn shallow_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let mut table = Table::new(self.capacity());
        let mut inside: *const K = core::ptr::null();
        for key in self.keys() {
            if inside.is_null() {
                inside = &raw const *key;
            }
            if table.is_sure() {
                break;
            }
            table.entry(key);
        }
        ops.enclosing(inside, table.block(Layout::new::<(K, V)>()))
    }
}

impl<T: MallocSizeOf, S> MallocSizeOf for HashSet<T, S> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if T::NEEDS_WALK || ops.wants_names() {
            self.size_of_each(ops, |element, ops| ops.element(element))
        } else {
            self.shallow_size_of_excluding_this(ops)
        }
    }
}

impl<T, S> MallocSizeOfEach for HashSet<T, S> {
    type Each<'a>
        = &'a T
    where
        Self: 'a;

    #[inline]
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        mut each: impl FnMut(&'a T, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        let own = self.shallow_size_of_excluding_this(ops);
        own + ops.contents(|ops| {
            let mut bytes = 0_usize;
            for element in self {
                bytes = bytes.saturating_add(each(element, ops));
            }
            bytes
        })
    }

    #[inline]
    fn shallow_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let mut table = Table::new(self.capacity());
        let mut inside: *const T = core::ptr::null();
        for element in self {
            if inside.is_null() {
                inside = &raw const *element;
            }
            if table.is_sure() {
                break;
            }
            table.entry(element);
        }
        ops.enclosing(inside, table.block(Layout::new::<T>()))
    }
}

/// The bytes of the nodes that a key starts.
#[inline(always)]
pub(crate) fn node<K, V, R: Reading>(nodes: &mut Nodes, key: &K, ops: &mut MallocSizeOfOps<R>) -> usize {
    match nodes.key(key) {
        Found::Nothing => 0,
        Found::Leaf => ops.enclosing(key, btree::leaf::<K, V>()),
        Found::Inner => ops.enclosing(key, btree::inner::<K, V>()),
    }
}

impl<K: MallocSizeOf, V: MallocSizeOf> MallocSizeOf for BTreeMap<K, V> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.size_of_each(ops, |(key, value), ops| ops.part(Edge::Key, key) + ops.part(Edge::Value, value))
    }
}

impl<K, V> MallocSizeOfEach for BTreeMap<K, V> {
    type Each<'a>
        = (&'a K, &'a V)
    where
        Self: 'a;

    #[inline]
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        mut each: impl FnMut((&'a K, &'a V), &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        let mut nodes = Nodes::new();
        ops.contents(|ops| {
            total(self.iter().map(|(key, value)| {
                node::<K, V, R>(&mut nodes, key, ops).saturating_add(each((key, value), ops))
            }))
        })
    }
}

impl<T: MallocSizeOf> MallocSizeOf for BTreeSet<T> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.size_of_each(ops, |element, ops| ops.element(element))
    }
}

impl<T> MallocSizeOfEach for BTreeSet<T> {
    type Each<'a>
        = &'a T
    where
        Self: 'a;

    #[inline]
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        mut each: impl FnMut(&'a T, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        let mut nodes = Nodes::new();
        ops.contents(|ops| {
            total(
                self.iter().map(|element| {
                    node::<T, (), R>(&mut nodes, element, ops).saturating_add(each(element, ops))
                }),
            )
        })
    }
}
