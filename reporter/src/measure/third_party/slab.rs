//! `slab`: computed; the capacity is exact, and the address of an element is inside the block.

use core::alloc::Layout;

use slab::Slab;

use crate::measure::impls::sequence::elements;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

/// A copy of the crate's own `SlabEntry`, so that the compiler gives both the same layout.
#[allow(dead_code, reason = "only its layout is used")]
enum SlabEntry<T> {
    Vacant(usize),
    Occupied(T),
}

impl<T: MallocSizeOf> MallocSizeOf for Slab<T> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if T::NEEDS_WALK || ops.wants_names() {
            self.size_of_each(ops, T::size_of_excluding_this)
        } else {
            self.shallow_size_of_excluding_this(ops)
        }
    }
}

impl<T> MallocSizeOfEach for Slab<T> {
    type Each<'a>
        = &'a T
    where
        T: 'a;

    #[inline]
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        each: impl FnMut(&'a T, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        self.shallow_size_of_excluding_this(ops)
            + elements(self.iter().map(|(_, element)| element), ops, each)
    }

    #[inline]
    fn shallow_size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let inside = self.iter().next().map_or(core::ptr::null(), |(_, element)| &raw const *element);
        let layout = Layout::array::<SlabEntry<T>>(self.capacity());
        ops.enclosing(inside, layout.unwrap_or(Layout::new::<()>()))
    }
}
