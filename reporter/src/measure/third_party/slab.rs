//! `slab`: computed; the capacity is exact, and the address of an element is inside the block.

use core::alloc::Layout;

use slab::Slab;

use crate::measure::impls::sequence::sequence;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

/// A copy of the crate's own `SlabEntry`, so that the compiler gives both the same layout.
#[allow(dead_code, reason = "only its layout is used")]
enum SlabEntry<T> {
    Vacant(usize),
    Occupied(T),
}

sequence!([T] Slab<T>, T, |slab| slab.iter().map(|(_, element)| element), |ops| {
    let inside = slab.iter().next().map_or(core::ptr::null(), |(_, element)| &raw const *element);
    let layout = Layout::array::<SlabEntry<T>>(slab.capacity());
    ops.enclosing(inside, layout.unwrap_or(Layout::new::<()>()))
});
