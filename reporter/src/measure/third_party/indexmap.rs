//! `indexmap`: computed. After removals the size is "at least", since a part of either block may be hidden.

use indexmap::{IndexMap, IndexSet};

use crate::measure::layout::index_map;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

impl<K: MallocSizeOf, V: MallocSizeOf, S> MallocSizeOf for IndexMap<K, V, S> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if K::NEEDS_WALK || V::NEEDS_WALK || ops.wants_names() {
            self.size_of_each(ops, |(key, value), ops| ops.key(key) + ops.value(value))
        } else {
            self.shallow_size_of_excluding_this(ops)
        }
    }
}

impl<K, V, S> MallocSizeOfEach for IndexMap<K, V, S> {
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
        own + ops.contents(|ops| self.iter().fold(0_usize, |sum, pair| sum.saturating_add(each(pair, ops))))
    }

    #[inline]
    fn shallow_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        index_map::blocks::<K, V, _, R>(self.capacity(), self.as_slice(), ops)
    }
}

impl<T: MallocSizeOf, S> MallocSizeOf for IndexSet<T, S> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if T::NEEDS_WALK || ops.wants_names() {
            self.size_of_each(ops, |element, ops| ops.element(element))
        } else {
            self.shallow_size_of_excluding_this(ops)
        }
    }
}

impl<T, S> MallocSizeOfEach for IndexSet<T, S> {
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
        own + ops
            .contents(|ops| self.iter().fold(0_usize, |sum, element| sum.saturating_add(each(element, ops))))
    }

    #[inline]
    fn shallow_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        index_map::blocks::<T, (), _, R>(self.capacity(), self.as_slice(), ops)
    }
}
