//! For the attributes `with` and `each` of the derive: a function measures a field, or the value behind the field's
//! locks and pointers. The type of the function's argument decides between the field and the value.

use core::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use super::malloc_size_of::MallocSizeOfEach;
use super::ops::MallocSizeOfOps;
use super::reading::Reading;

/// The function takes the value: `with`.
#[derive(Debug)]
pub struct WholeValue;

/// The function takes each element of the value: `each`.
#[derive(Debug)]
pub struct EachElement;

/// The value is the field itself.
#[derive(Debug)]
pub struct AtField;

/// The value is behind a pointer. `Depth` is the way from the pointer's target to the value.
#[derive(Debug)]
pub struct BehindPointer<Depth>(PhantomData<Depth>);

/// The value is behind a lock. `Depth` is the way from the lock's content to the value.
#[derive(Debug)]
pub struct BehindLock<Depth>(PhantomData<Depth>);

/// A value that `function` measures, or that leads to such a value. The compiler infers `Depth`, the way to the value:
/// only one depth fits a function whose argument has a known type.
#[diagnostic::on_unimplemented(
    message = "the function does not take a `{Self}`, nor a value behind its locks and pointers",
    label = "the function of `with` or `each` does not fit `{Self}`",
    note = "`with = function` needs `fn function<R: Reading>(value: &Value, ops: &mut MallocSizeOfOps<R>) -> usize`, where `Value` is the field's type, or the type inside of its `Arc`, `Rc`, `Box`, `Mutex`, `RwLock` or `RefCell`",
    note = "`each = function` needs such a function for an element: `&T`, or `(&K, &V)` for a map"
)]
pub trait Reach<'v, Part, F, R, Depth> {
    fn reach(&'v self, ops: &mut MallocSizeOfOps<R>, function: &F) -> usize;
}

impl<'v, T, F, R> Reach<'v, WholeValue, F, R, AtField> for T
where
    T: ?Sized,
    F: Fn(&T, &mut MallocSizeOfOps<R>) -> usize,
{
    #[inline]
    fn reach(&'v self, ops: &mut MallocSizeOfOps<R>, function: &F) -> usize {
        function(self, ops)
    }
}

impl<'v, T, F, R> Reach<'v, EachElement, F, R, AtField> for T
where
    T: MallocSizeOfEach + ?Sized + 'v,
    F: Fn(T::Each<'v>, &mut MallocSizeOfOps<R>) -> usize,
    R: Reading,
{
    #[inline]
    fn reach(&'v self, ops: &mut MallocSizeOfOps<R>, function: &F) -> usize {
        self.size_of_each(ops, function)
    }
}

macro_rules! pointer {
    ($($pointer:ident),*) => {$(
        impl<'v, Part, F, R, Depth, T> Reach<'v, Part, F, R, BehindPointer<Depth>> for $pointer<T>
        where
            T: Reach<'v, Part, F, R, Depth> + ?Sized,
            R: Reading,
        {
            #[inline]
            fn reach(&'v self, ops: &mut MallocSizeOfOps<R>, function: &F) -> usize {
                self.size_of_each(ops, |value, ops| value.reach(ops, function))
            }
        }
    )*};
}
pointer!(Box, Rc, Arc);

/// A lock or cell that gives access to its value through a guard.
pub(super) trait MeasuredLock {
    type Value: ?Sized;

    /// Measures the value. Skips it if another thread or borrow holds the lock.
    fn measure_value<R: Reading>(
        &self,
        ops: &mut MallocSizeOfOps<R>,
        measure: impl FnOnce(&Self::Value, &mut MallocSizeOfOps<R>) -> usize,
    ) -> usize;
}

impl<'v, Part, F, R, Depth, L> Reach<'v, Part, F, R, BehindLock<Depth>> for L
where
    L: MeasuredLock + ?Sized,
    L::Value: for<'g> Reach<'g, Part, F, R, Depth>,
    R: Reading,
{
    #[inline]
    fn reach(&'v self, ops: &mut MallocSizeOfOps<R>, function: &F) -> usize {
        self.measure_value(ops, |value, ops| value.reach(ops, function))
    }
}

/// Measures a field with `with = function`.
#[inline]
pub fn measure_with<'v, T, F, R, Depth>(value: &'v T, ops: &mut MallocSizeOfOps<R>, function: &F) -> usize
where
    T: Reach<'v, WholeValue, F, R, Depth> + ?Sized,
{
    value.reach(ops, function)
}

/// Measures the elements of a field with `each = function`.
#[inline]
pub fn measure_each<'v, T, F, R, Depth>(value: &'v T, ops: &mut MallocSizeOfOps<R>, function: &F) -> usize
where
    T: Reach<'v, EachElement, F, R, Depth> + ?Sized,
{
    value.reach(ops, function)
}
