//! How a walk continues into the parts of a value that implement `MallocSizeOf`.

use super::block::Edge;
use super::malloc_size_of::MallocSizeOf;
use super::ops::{MOST_BYTES, MallocSizeOfOps};
use super::reading::Reading;

impl<R: Reading> MallocSizeOfOps<R> {
    /// Measures a named field of a struct.
    #[inline]
    pub fn field<T: MallocSizeOf + ?Sized>(&mut self, name: &'static str, value: &T) -> usize {
        self.part(Edge::Field(name), value)
    }

    /// Measures an element of a sequence or set.
    #[inline]
    pub fn element<T: MallocSizeOf + ?Sized>(&mut self, value: &T) -> usize {
        self.part(Edge::Element, value)
    }

    /// Measures a key of a map.
    #[inline]
    pub fn key<T: MallocSizeOf + ?Sized>(&mut self, value: &T) -> usize {
        self.part(Edge::Key, value)
    }

    /// Measures a value of a map.
    #[inline]
    pub fn value<T: MallocSizeOf + ?Sized>(&mut self, value: &T) -> usize {
        self.part(Edge::Value, value)
    }

    /// Measures any part of a value by its own impl.
    #[inline(always)]
    pub fn part<T: MallocSizeOf + ?Sized>(&mut self, edge: Edge, value: &T) -> usize {
        if !T::NEEDS_WALK && !self.wants_names() {
            return 0;
        }
        // Not by `part_with`: the compiler would make one more function for each type.
        if !self.wants_steps() {
            return value.size_of_excluding_this(self).min(MOST_BYTES);
        }
        self.step(edge, value, T::size_of_excluding_this)
    }
}
