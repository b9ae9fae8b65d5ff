//! `hashbrown`: computed, also after removals; a table does not give access to the start of its block.

use core::alloc::Layout;
use core::hash::{BuildHasher, Hash};

use hashbrown::{HashMap, HashSet, HashTable};

use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

/// Counts the block of a table of this many bytes.
fn table<T, R: Reading>(inside: Option<&T>, bytes: usize, ops: &mut MallocSizeOfOps<R>) -> usize {
    let inside = inside.map_or(core::ptr::null(), |entry| &raw const *entry);
    // The groups of control bytes need an alignment of at most 16.
    let layout = Layout::from_size_align(bytes, align_of::<T>().max(16));
    ops.enclosing(inside, layout.unwrap_or(Layout::new::<()>()))
}

impl<K: MallocSizeOf + Eq + Hash, V: MallocSizeOf, S: BuildHasher> MallocSizeOf for HashMap<K, V, S> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if K::NEEDS_WALK || V::NEEDS_WALK || ops.wants_names() {
            self.size_of_each(ops, |(key, value), ops| ops.key(key) + ops.value(value))
        } else {
            self.shallow_size_of_excluding_this(ops)
        }
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> MallocSizeOfEach for HashMap<K, V, S> {
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
        table(self.keys().next(), self.allocation_size(), ops)
    }
}

/// Containers that can pass on their elements one by one.
macro_rules! elements_of {
    ($type:ident<T $(, $hasher:ident)?>, $($bound:path),*) => {
        impl<T: MallocSizeOf $(+ $bound)* $(, $hasher: BuildHasher)?> MallocSizeOf for $type<T $(, $hasher)?> {
            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                if T::NEEDS_WALK || ops.wants_names() {
                    self.size_of_each(ops, |element, ops| ops.element(element))
                } else {
                    self.shallow_size_of_excluding_this(ops)
                }
            }
        }

        impl<T: $($bound +)* $(, $hasher: BuildHasher)?> MallocSizeOfEach for $type<T $(, $hasher)?> {
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
                own + ops.contents(|ops| self.iter().fold(0_usize, |sum, element| sum.saturating_add(each(element, ops))))
            }

            #[inline]
            fn shallow_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                table(self.iter().next(), self.allocation_size(), ops)
            }
        }
    };
}
elements_of!(HashSet<T, S>, Eq, Hash);
elements_of!(HashTable<T>,);
