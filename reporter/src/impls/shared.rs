//! `Rc` and `Arc`: one block, counted by whoever reaches it first.

use core::ops::Deref;
use core::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use crate::layout::shared::counted;
use crate::malloc_size_of::{MallocSizeOf, MallocSizeOfEach, OwningPointer};
use crate::ops::MallocSizeOfOps;
use crate::reading::Reading;

#[inline]
fn shared<'a, T: ?Sized, R: Reading>(
    value: &'a T,
    ops: &mut MallocSizeOfOps<R>,
    contents: impl FnOnce(&'a T, &mut MallocSizeOfOps<R>) -> usize,
) -> usize {
    if !ops.first_visit(value) {
        return 0;
    }
    ops.enclosing(value, counted(value)) + ops.contents(|ops| contents(value, ops))
}

macro_rules! shared_pointer {
    ($($pointer:ident),*) => {$(
        /// Counted once in a collection: by the first walk that reaches it.
        impl<T: MallocSizeOf + ?Sized> MallocSizeOf for $pointer<T> {
            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                shared(&**self, ops, T::size_of_excluding_this)
            }
        }

        impl<T: MallocSizeOf + ?Sized> OwningPointer for $pointer<T> {}

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
                shared(&**self, ops, each)
            }
        }

        impl<T: MallocSizeOf + ?Sized> MallocSizeOf for Pin<$pointer<T>> {
            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                shared(self.deref(), ops, T::size_of_excluding_this)
            }
        }

        impl<T: MallocSizeOf + ?Sized> OwningPointer for Pin<$pointer<T>> {}
    )*};
}
shared_pointer!(Rc, Arc);
