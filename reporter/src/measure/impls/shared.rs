//! `Rc` and `Arc`, which own one block. The first walk that reaches the block counts it. An empty `Arc` may point to a
//! static of std, which is not counted.

use core::ops::Deref;
use core::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use crate::measure::layout::shared::{SharedBlock, before, block_kind, counted, inside};
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach, OwningPointer};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

#[inline]
#[allow(unsafe_code, reason = "passes the start of the pointer's block to `ops.block`")]
fn shared<'a, T: ?Sized, R: Reading>(
    value: &'a T,
    strong: impl FnOnce() -> usize,
    ops: &mut MallocSizeOfOps<R>,
    mut contents: impl FnMut(&'a T, &mut MallocSizeOfOps<R>) -> usize,
) -> usize {
    let kind = block_kind(value, strong);
    if kind == SharedBlock::Static {
        return ops.points_to(&raw const *value);
    }
    if !ops.first_visit(before(value)) {
        return 0;
    }
    let (layout, offset) = counted(value);
    let own = if kind == SharedBlock::Allocated {
        let start = (&raw const *value).wrapping_byte_sub(offset);
        // SAFETY: `value` is the target of a live `Rc` or `Arc`. Its block is not a static and has this layout. An
        // experiment has shown that the declared allocator returns such blocks with this start.
        unsafe { ops.block(start, layout) }
    } else {
        ops.enclosing(inside(value), layout)
    };
    own + ops.contents(|ops| contents(value, ops))
}

macro_rules! shared_pointer {
    ($($pointer:ident),*) => {$(
        /// A collection counts the block once: in the first walk that reaches it.
        impl<T: MallocSizeOf + ?Sized> MallocSizeOf for $pointer<T> {
            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                shared(&**self, || $pointer::strong_count(self), ops, T::size_of_excluding_this)
            }
        }

        impl<T: MallocSizeOf + ?Sized> OwningPointer for $pointer<T> {}

        #[diagnostic::do_not_recommend]
        impl<T: ?Sized> MallocSizeOfEach for $pointer<T> {
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
                shared(&**self, || $pointer::strong_count(self), ops, each)
            }
        }

        impl<T: MallocSizeOf + ?Sized> MallocSizeOf for Pin<$pointer<T>> {
            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                // The pin gives no access to the counts.
                shared(self.deref(), || 0, ops, T::size_of_excluding_this)
            }
        }

        impl<T: MallocSizeOf + ?Sized> OwningPointer for Pin<$pointer<T>> {}
    )*};
}
shared_pointer!(Rc, Arc);
