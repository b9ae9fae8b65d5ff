//! `triomphe`: `Arc` exact, `UniqueArc` and `ThinArc` computed; each block is counted once.

use core::alloc::Layout;

use triomphe::{Arc, HeaderSlice, ThinArc, UniqueArc};

use crate::measure::layout::shared::inside;
use crate::measure::malloc_size_of::{MallocSizeOf, OwningPointer};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

/// The layout of the block: the count, then the value.
fn counted<T: ?Sized>(value: &T) -> Layout {
    match Layout::new::<usize>().extend(Layout::for_value(value)) {
        Ok((block, _)) => block.pad_to_align(),
        // The layout of a live value's block cannot overflow.
        Err(_) => Layout::for_value(value),
    }
}

/// A collection counts the block once: in the first walk that reaches it.
impl<T: MallocSizeOf + ?Sized> MallocSizeOf for Arc<T> {
    #[allow(unsafe_code, reason = "passes the start of the pointer's block to `ops.block`")]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if !ops.first_visit(self.heap_ptr()) {
            return 0;
        }
        // SAFETY: `heap_ptr` returns the block's start, for memory reporting. The block contains a count and the
        // value, with C layout.
        let own = unsafe { ops.block(self.heap_ptr(), counted::<T>(self)) };
        own + ops.contents(|ops| (**self).size_of_excluding_this(ops))
    }
}

impl<T: MallocSizeOf + ?Sized> OwningPointer for Arc<T> {}

/// The pointer gives access only to the value in its block.
impl<T: MallocSizeOf + ?Sized> MallocSizeOf for UniqueArc<T> {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        let value: &T = self;
        ops.enclosing(inside(value), counted(value)) + ops.contents(|ops| value.size_of_excluding_this(ops))
    }
}

impl<T: MallocSizeOf + ?Sized> OwningPointer for UniqueArc<T> {}

impl<H: MallocSizeOf, T: MallocSizeOf + ?Sized> MallocSizeOf for HeaderSlice<H, T> {
    const NEEDS_WALK: bool = H::NEEDS_WALK || T::NEEDS_WALK;

    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        ops.field("header", &self.header) + ops.field("slice", &self.slice)
    }
}

/// A collection counts the block once: in the first walk that reaches it.
impl<H: MallocSizeOf, T: MallocSizeOf> MallocSizeOf for ThinArc<H, T> {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.with_arc(|arc| {
            if !ops.first_visit(arc.heap_ptr()) {
                return 0;
            }
            let own = ops.enclosing(arc.heap_ptr(), counted(&**arc));
            own + ops
                .contents(|ops| ops.field("header", &self.header.header) + ops.field("slice", &self.slice))
        })
    }
}

impl<H: MallocSizeOf, T: MallocSizeOf> OwningPointer for ThinArc<H, T> {}
