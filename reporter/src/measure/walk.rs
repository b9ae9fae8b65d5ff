//! Continues a walk into the parts of a value that implement `MallocSizeOf`.

use core::alloc::Layout;

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

    /// For the derive: measures a part. The last two arguments are items of the impl of the part's type.
    ///
    /// `walk` is a function pointer, which inlining removes. With a generic function, the compiler would report the
    /// error about a type without an impl again, for the type of the function. A function that could need a drop would
    /// also cost compile time.
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

    /// Like `typed_part`, for a reading that needs steps or names.
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
        // This function does not call `part_with`: the compiler would generate one more function for each type.
        if !self.wants_steps() {
            return walk(value, self).min(MOST_BYTES);
        }
        self.step(edge, value, walk)
    }

    /// The bytes of a block that holds one value or a slice of values, and of the block's
    /// [`contents`](Self::contents). `size` is the size of the whole block: for a `Vec`, the size of its capacity.
    ///
    /// For a reading without steps, the compiler generates one function for each type of value, for all kinds of
    /// pointers. Walks of types with such pointers call that function.
    ///
    /// # Safety
    ///
    /// `size` is 0, or `value` starts a live block of the global allocator with this size and the value's alignment.
    #[inline(always)]
    #[allow(unsafe_code, reason = "the reading may ask the allocator about the block")]
    pub(crate) unsafe fn block_with_contents<T: MallocSizeOf + ?Sized>(
        &mut self,
        value: &T,
        size: usize,
    ) -> usize {
        if !R::STEPS && !R::NAMES {
            // SAFETY: the caller guarantees the same precondition.
            return unsafe { self.plain_block_with_contents(value, size) };
        }
        // SAFETY: the caller guarantees that `size` is 0, or that `value` starts a live block with this layout.
        let own = unsafe { self.block(value, block_layout(value, size)) };
        if !T::NEEDS_WALK && !self.wants_names() {
            return own;
        }
        own + self.contents(|ops| value.size_of_excluding_this(ops))
    }

    /// # Safety
    ///
    /// The contract of [`block_with_contents`](Self::block_with_contents) applies.
    #[inline(never)]
    #[allow(unsafe_code, reason = "the reading may ask the allocator about the block")]
    unsafe fn plain_block_with_contents<T: MallocSizeOf + ?Sized>(
        &mut self,
        value: &T,
        size: usize,
    ) -> usize {
        if T::NEEDS_WALK && !self.has_room() {
            // SAFETY: the caller guarantees the same precondition.
            return self
                .contents_deep(&mut |ops: &mut Self| unsafe { ops.plain_block_with_contents(value, size) });
        }
        // SAFETY: the caller guarantees that `size` is 0, or that `value` starts a live block with this layout.
        let own = unsafe { self.block(value, block_layout(value, size)) };
        let contents = if T::NEEDS_WALK { value.size_of_excluding_this(self) } else { 0 };
        own + contents.min(MOST_BYTES)
    }

    /// Runs `walk` on a fresh stack and returns its result; `None` while the current stack has room.
    ///
    /// A walk without steps passes its own function, so the compiler generates the function only once. For
    /// [`contents`](Self::contents), the compiler generates the closure twice, once for each stack.
    #[inline(always)]
    pub(crate) fn on_fresh_stack<T: ?Sized>(
        &mut self,
        value: &T,
        walk: fn(&T, &mut Self) -> usize,
    ) -> Option<usize> {
        if self.has_room() {
            return None;
        }
        Some(self.contents_deep(&mut |ops: &mut Self| walk(value, ops)))
    }
}

/// The layout of a block of this size whose start is `value`.
#[inline]
#[allow(unsafe_code, reason = "the check costs a fifth of the walk, and every block passes it")]
fn block_layout<T: ?Sized>(value: &T, size: usize) -> Layout {
    // SAFETY: Rust allocates no block whose size exceeds `isize::MAX`, and alignments are powers of two.
    unsafe { Layout::from_size_align_unchecked(size, align_of_val(value)) }
}
