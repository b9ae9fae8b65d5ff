//! Continues a walk into the parts of a value that implement `MallocSizeOf`.

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
        self.typed_part(edge, value, T::NEEDS_WALK, T::size_of_excluding_this)
    }

    /// For the derive: measures a part, with two items of the impl of the part's type.
    ///
    /// `walk` is a function pointer, which inlining removes, and not a generic function: for a type without an impl,
    /// the compiler would report the error again for the type of the function. A function that could need a drop
    /// would also cost compile time.
    #[doc(hidden)]
    #[inline(always)]
    pub fn typed_part<T: ?Sized>(
        &mut self,
        edge: Edge,
        value: &T,
        needs_walk: bool,
        walk: fn(&T, &mut Self) -> usize,
    ) -> usize {
        // Constants decide this branch, so that the walk of a type consists only of calls for parts that own heap.
        if R::STEPS || R::NAMES {
            return self.typed_step(edge, value, needs_walk, walk);
        }
        if needs_walk { walk(value, self).min(MOST_BYTES) } else { 0 }
    }

    /// As `typed_part`, for a reading that needs steps or names.
    #[inline(always)]
    fn typed_step<T: ?Sized>(
        &mut self,
        edge: Edge,
        value: &T,
        needs_walk: bool,
        walk: fn(&T, &mut Self) -> usize,
    ) -> usize {
        if !needs_walk && !self.wants_names() {
            return 0;
        }
        // It does not call `part_with`: the compiler would generate one more function for each type.
        if !self.wants_steps() {
            return walk(value, self).min(MOST_BYTES);
        }
        self.step(edge, value, walk)
    }

    /// As [`contents`](Self::contents), for a block that contains one value or a slice of values.
    ///
    /// For a reading without steps, the compiler generates one function for each type of value, for all kinds of
    /// pointers. Walks of types with such pointers call that function.
    #[inline(always)]
    pub(crate) fn contents_of<T: MallocSizeOf + ?Sized>(&mut self, value: &T) -> usize {
        if R::STEPS || R::NAMES {
            return self.contents(|ops| value.size_of_excluding_this(ops));
        }
        self.plain_contents_of(value)
    }

    #[inline(never)]
    fn plain_contents_of<T: MallocSizeOf + ?Sized>(&mut self, value: &T) -> usize {
        if self.has_room() {
            return value.size_of_excluding_this(self).min(MOST_BYTES);
        }
        self.contents_deep(&mut |ops: &mut Self| ops.plain_contents_of(value))
    }
}
