//! [`MallocSizeOfOps`]: the functions that a walk calls.

use core::alloc::Layout;
use core::any::type_name;
use core::fmt;
use core::marker::PhantomData;

use memory_report::{SkipReason, SkippedPart};

use super::block::{Edge, WalkedBlock};
use super::reading::{ComputedReading, ErasedReading, MeasuredReading, Reading};
use super::stack_guard::StackGuard;

/// The maximum number of bytes of a value. A larger result is a fault of an impl, or of a method that the impl calls.
/// The limit leaves room for sums of several results.
pub(crate) const MOST_BYTES: usize = isize::MAX as usize >> if usize::BITS > 32 { 16 } else { 2 };

/// The sum of the bytes of many parts. It does not overflow.
#[inline]
pub(crate) fn total(parts: impl Iterator<Item = usize>) -> usize {
    parts.fold(0, usize::saturating_add)
}

/// Carries the reading `R` through a walk. Every `size_of_excluding_this` receives it.
///
/// A hand-written impl calls [`field`](Self::field), [`element`](Self::element),
/// [`key`](Self::key) and [`value`](Self::value) for the parts of a value. If the value owns memory through raw
/// pointers, the impl calls [`block`](Self::block) or [`enclosing`](Self::enclosing) for its blocks, and measures
/// their contents inside [`contents`](Self::contents).
///
/// These functions return at most 2^47 bytes on 64-bit systems. No process has as much memory, so sums of their
/// results do not overflow, even with wrong results of an impl.
pub struct MallocSizeOfOps<R> {
    reading: R,
    stack: StackGuard,
    /// Makes the type neither `Send` nor `Sync`: the stack guard's window is valid on one thread only.
    one_thread: PhantomData<*const ()>,
}

/// A walk of the contents of a block. This trait replaces `dyn FnMut`: the table of a `dyn FnMut` has unused
/// functions, and the compiler would generate them for each type.
pub(super) trait ContentsWalk<R> {
    fn walk(&mut self, ops: &mut MallocSizeOfOps<R>) -> usize;
}

impl<R, F: FnMut(&mut MallocSizeOfOps<R>) -> usize> ContentsWalk<R> for F {
    fn walk(&mut self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self(ops)
    }
}

impl MallocSizeOfOps<ComputedReading> {
    /// Ops that compute bytes from layouts and call no allocator.
    pub fn computed() -> Self {
        Self::new(ComputedReading::default())
    }
}

impl MallocSizeOfOps<MeasuredReading> {
    /// Ops that get sizes from the declared allocator; `None` if [`global_allocator!`](crate::global_allocator) has
    /// not declared one.
    pub fn measured() -> Option<Self> {
        MeasuredReading::new().map(Self::new)
    }
}

impl<R: Reading> MallocSizeOfOps<R> {
    /// Ops with the given reading.
    pub fn new(reading: R) -> Self {
        Self { reading, stack: StackGuard::new(), one_thread: PhantomData }
    }

    /// Returns the reading, which contains its results.
    pub fn into_reading(self) -> R {
        self.reading
    }

    /// The reading that receives the results.
    pub fn reading(&mut self) -> &mut R {
        &mut self.reading
    }

    /// Counts a block that starts at `pointer`, and returns its bytes. Returns 0 for a layout of size 0, since Rust
    /// does not allocate a block for it.
    ///
    /// # Safety
    ///
    /// If `layout.size()` is not 0, `pointer` was returned by the program's global allocator for
    /// `layout` and has not been freed.
    #[inline]
    #[allow(unsafe_code, reason = "the reading may ask the allocator about the pointer")]
    pub unsafe fn block<T: ?Sized>(&mut self, pointer: *const T, layout: Layout) -> usize {
        if layout.size() == 0 {
            return 0;
        }
        let block = WalkedBlock { pointer: pointer.cast(), layout, type_name: type_name::<T> };
        // SAFETY: the size is not 0, so the caller guarantees that the global allocator returned the pointer for this
        // layout and that the block is live.
        unsafe { self.reading.block(block) }
    }

    /// Counts a block whose start is unknown, by an address inside the block. Returns the bytes of the block: the
    /// layout's size, or the usable size if an engine has the block. It never reads through the pointer.
    #[inline]
    pub fn enclosing<T: ?Sized>(&mut self, pointer: *const T, layout: Layout) -> usize {
        if layout.size() == 0 {
            return 0;
        }
        self.reading.enclosing(WalkedBlock { pointer: pointer.cast(), layout, type_name: type_name::<T> })
    }

    /// Measures the contents of the block that was counted last. Deep values are safe: near the end of its stack the
    /// walk continues on a new stack. At least 256 KiB of stack are free between two calls, and more after the walk has
    /// used more stack between two calls.
    #[inline]
    pub fn contents(&mut self, mut walk: impl FnMut(&mut Self) -> usize) -> usize {
        if self.wants_steps() {
            self.reading.open_block();
        }
        let bytes = if self.stack.has_room() { walk(self) } else { self.contents_deep(&mut walk) };
        if self.wants_steps() {
            self.reading.close_block();
        }
        bytes.min(MOST_BYTES)
    }

    /// Takes a `dyn` walk: with a generic walk, the compiler would generate all code for a new stack again for each
    /// type.
    #[cold]
    #[inline(never)]
    pub(super) fn contents_deep(&mut self, walk: &mut dyn ContentsWalk<R>) -> usize {
        if self.stack.learn() {
            return walk.walk(self);
        }
        let guard = self.stack;
        let bytes = guard.on_fresh_stack(|| {
            self.stack.forget_window();
            self.stack.learn();
            walk.walk(self)
        });
        self.stack.forget_window();
        bytes
    }

    /// Visits a part that owns no heap. Its type need not be measurable.
    #[doc(hidden)]
    #[inline]
    pub fn plain_part<T: ?Sized>(&mut self, edge: Edge, value: &T) -> usize {
        if R::NAMES { self.part_with(edge, value, |_, _| 0) } else { 0 }
    }

    /// Measures parts of one kind, one after the other, like [`part_with`](Self::part_with) for each part.
    #[inline]
    pub(crate) fn parts<'a, T: 'a>(
        &mut self,
        edge: Edge,
        parts: impl Iterator<Item = &'a T>,
        mut measure: impl FnMut(&'a T, &mut Self) -> usize,
    ) -> usize {
        let mut bytes = 0_usize;
        if !R::MERGES || !self.reading.merges() {
            for part in parts {
                bytes = bytes.saturating_add(self.part_with(edge, part, |_, ops| measure(part, ops)));
            }
            return bytes;
        }
        let entered = self.reading.enter_part(edge, type_name::<T>);
        let mut count = 0;
        for part in parts {
            bytes = bytes.saturating_add(measure(part, self));
            count += 1;
        }
        self.reading.merged(count);
        self.reading.leave_part(entered);
        bytes
    }

    /// Measures any part of a value with `measure`. Use it for types of other crates.
    #[inline(always)]
    pub fn part_with<T: ?Sized>(
        &mut self,
        edge: Edge,
        value: &T,
        measure: impl FnOnce(&T, &mut Self) -> usize,
    ) -> usize {
        if !self.wants_steps() {
            return measure(value, self).min(MOST_BYTES);
        }
        self.step(edge, value, measure)
    }

    /// Inlined in release builds, so that the compiler can fold a constant edge. A debug build folds nothing. There,
    /// inlining would add all of this code to the frame of the struct, once for each field.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn step<T: ?Sized>(
        &mut self,
        edge: Edge,
        value: &T,
        measure: impl FnOnce(&T, &mut Self) -> usize,
    ) -> usize {
        let entered = self.reading.enter_part(edge, type_name::<T>);
        let bytes = measure(value, self);
        self.reading.leave_part(entered);
        bytes.min(MOST_BYTES)
    }

    /// Whether the reading needs the names of fields and types, so that the walk visits plain data. The impl of a
    /// container visits elements that own no heap only if the result is true.
    ///
    /// The condition tests the constant first, here and in `wants_steps`. So for a reading without names, the compiler
    /// does not generate the code that depends on the result.
    #[inline(always)]
    pub fn wants_names(&self) -> bool {
        R::NAMES && self.reading.wants_names()
    }

    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.stack.has_room()
    }

    #[inline(always)]
    pub(crate) fn wants_steps(&self) -> bool {
        R::STEPS && self.reading.wants_steps()
    }

    /// Whether the walk meets a shared block for the first time in this collection. The walk counts the block only if
    /// the result is true. `pointer` must be the same for every path to the block, and must point to one of the block's
    /// bytes, not behind them: the next block may start there.
    ///
    /// The address identifies a block. Suppose that the program frees a counted block before the collection ends, and
    /// allocates another shared block at the same address. The collection then does not count the new block, nor
    /// memory that only this block owns. So the reports lack at most the memory that the program allocated during the
    /// collection. With an engine of DMD, [`collect_reports`](crate::collect_reports) detects the new block and
    /// counts it.
    #[inline]
    pub fn first_visit<T: ?Sized>(&mut self, pointer: *const T) -> bool {
        let is_first = self.reading.first_visit(pointer.addr());
        if self.wants_names() {
            self.reading.shared(pointer.addr(), is_first);
        }
        is_first
    }

    /// Visits a pointer that does not own its target: counts 0 bytes, but adds an edge for a reading of references.
    #[inline]
    pub fn points_to<T: ?Sized>(&mut self, pointer: *const T) -> usize {
        if self.wants_names() {
            self.reading.pointer(pointer.addr());
        }
        0
    }

    /// Records that a part of type `T` could not be measured. Returns 0.
    #[cold]
    pub fn skip<T: ?Sized>(&mut self, reason: SkipReason) -> usize {
        self.reading.state().skip(reason, type_name::<T>());
        0
    }

    /// The parts that could not be measured so far.
    pub fn skipped(&mut self) -> &[SkippedPart] {
        self.reading.state().skipped()
    }

    /// Continues the walk with a `dyn` reading, for object-safe traits.
    pub fn erased<T>(&mut self, walk: impl FnOnce(&mut MallocSizeOfOps<ErasedReading<'_>>) -> T) -> T {
        let mut ops = MallocSizeOfOps {
            reading: ErasedReading::new(&mut self.reading),
            stack: self.stack,
            one_thread: PhantomData,
        };
        let result = walk(&mut ops);
        self.stack.learn_from(ops.stack);
        result
    }
}

impl<R: fmt::Debug> fmt::Debug for MallocSizeOfOps<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MallocSizeOfOps").field("reading", &self.reading).finish_non_exhaustive()
    }
}
