//! `Box`, which owns a block.

use core::alloc::Layout;
use core::ops::Deref;
use core::pin::Pin;

use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach, OwningPointer};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::prefetch;
use crate::measure::reading::Reading;

#[inline]
#[allow(unsafe_code, reason = "passes the start of the box's block to `ops.block`")]
fn boxed<T: ?Sized, R: Reading>(value: &T, ops: &mut MallocSizeOfOps<R>) -> usize {
    // SAFETY: the callers below pass the target of a `Box`, which is the start of a block with the value's layout.
    unsafe { ops.block(value, Layout::for_value(value)) }
}

#[inline]
#[allow(unsafe_code, reason = "passes the start of the box's block to `ops.block_with_contents`")]
fn boxed_and_contents<T: MallocSizeOf + ?Sized, R: Reading>(
    value: &T,
    ops: &mut MallocSizeOfOps<R>,
) -> usize {
    if ops.wants_steps() {
        prefetch::behind(value);
    }
    // SAFETY: the callers below pass the target of a `Box`, which is the start of a block with the value's size.
    unsafe { ops.block_with_contents(value, size_of_val(value)) }
}

impl<T: MallocSizeOf + ?Sized> MallocSizeOf for Box<T> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        boxed_and_contents(&**self, ops)
    }
}

impl<T: MallocSizeOf + ?Sized> OwningPointer for Box<T> {}

#[diagnostic::do_not_recommend]
impl<T: ?Sized> MallocSizeOfEach for Box<T> {
    type Each<'a>
        = &'a T
    where
        T: 'a;

    #[inline]
    fn size_of_each<'a, R: Reading>(
        &'a self,
        ops: &mut MallocSizeOfOps<R>,
        mut each: impl FnMut(&'a T, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize {
        boxed(&**self, ops) + ops.contents(|ops| each(self, ops))
    }
}

impl<T: MallocSizeOf + ?Sized> MallocSizeOf for Pin<Box<T>> {
    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        boxed_and_contents(self.deref(), ops)
    }
}

impl<T: MallocSizeOf + ?Sized> OwningPointer for Pin<Box<T>> {}
