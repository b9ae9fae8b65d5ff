//! `Vec`, `VecDeque`, `BinaryHeap` and `LinkedList`.

use core::alloc::Layout;
use std::collections::{BinaryHeap, LinkedList, VecDeque};

use crate::measure::block::Edge;
use crate::measure::layout::list;
use crate::measure::malloc_size_of::{MallocSizeOf, MallocSizeOfEach};
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

/// The layout of a live container's block; of size 0 if it has no block.
#[inline]
#[allow(unsafe_code, reason = "the check costs a fifth of the walk, and every container passes it")]
fn array<T>(capacity: usize) -> Layout {
    // SAFETY: std allocates no container whose size exceeds `isize::MAX`. For elements of size 0, the size is 0 for
    // any capacity.
    unsafe { Layout::from_size_align_unchecked(capacity.wrapping_mul(size_of::<T>()), align_of::<T>()) }
}

#[inline]
pub(crate) fn elements<'a, T: 'a, R: Reading>(
    elements: impl Iterator<Item = &'a T>,
    ops: &mut MallocSizeOfOps<R>,
    each: impl FnMut(&'a T, &mut MallocSizeOfOps<R>) -> usize,
) -> usize {
    let mut parts = Some((elements, each));
    ops.contents(|ops| parts.take().map_or(0, |(elements, each)| ops.parts(Edge::Element, elements, each)))
}

/// Implements `MallocSizeOfEach` for a container with the elements `$elements`. `$own` counts its own blocks.
macro_rules! each_element {
    ([$($generics:tt)*] $type:ty, $element:ty, |$this:ident| $elements:expr, |$ops:ident| $own:expr) => {
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> MallocSizeOfEach for $type {
            type Each<'a>
                = &'a $element
            where
                Self: 'a;

            #[inline]
            fn size_of_each<'a, R: Reading>(
                &'a self,
                ops: &mut MallocSizeOfOps<R>,
                each: impl FnMut(&'a $element, &mut MallocSizeOfOps<R>) -> usize,
            ) -> usize {
                let $this = self;
                self.shallow_size_of_excluding_this(ops)
                    + $crate::measure::impls::sequence::elements($elements, ops, each)
            }

            #[inline]
            #[allow(unsafe_code, reason = "passes the start of the container's block to `ops.block`")]
            fn shallow_size_of_excluding_this<R: Reading>(&self, $ops: &mut MallocSizeOfOps<R>) -> usize {
                let $this = self;
                $own
            }
        }
    };
}
pub(crate) use each_element;

/// Does the same as `each_element!`, and also implements `MallocSizeOf` by `MallocSizeOfEach`.
macro_rules! sequence {
    ([$($generics:tt)*] $type:ty, $element:ty, $($parts:tt)*) => {
        impl<$($generics)*> MallocSizeOf for $type
        where
            $element: MallocSizeOf,
        {
            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                if <$element as MallocSizeOf>::NEEDS_WALK || ops.wants_names() {
                    self.size_of_each(ops, <$element as MallocSizeOf>::size_of_excluding_this)
                } else {
                    self.shallow_size_of_excluding_this(ops)
                }
            }
        }

        $crate::measure::impls::sequence::each_element!([$($generics)*] $type, $element, $($parts)*);
    };
}
pub(crate) use sequence;

self::sequence!([T] VecDeque<T>, T, |deque| deque.iter(), |ops| {
    let layout = array::<T>(deque.capacity());
    let (front, back) = deque.as_slices();
    if back.is_empty() {
        return ops.enclosing(front.as_ptr(), layout);
    }
    // SAFETY: the second part of a deque in two parts starts the block, which was allocated for the capacity.
    unsafe { ops.block(back.as_ptr(), layout) }
});

/// Implements `MallocSizeOf` for a container that gives access to all of its elements as one slice.
macro_rules! slice {
    ($($type:ident),*) => {$(
        impl<T: MallocSizeOf> MallocSizeOf for $type<T> {
            #[inline]
            #[allow(unsafe_code, reason = "passes the start of the container's block to `ops.block_with_contents`")]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                if R::STEPS || R::NAMES {
                    let own = self.shallow_size_of_excluding_this(ops);
                    let is_walked = T::NEEDS_WALK || ops.wants_names();
                    let contents =
                        if is_walked { elements(self.iter(), ops, T::size_of_excluding_this) } else { 0 };
                    return own + contents;
                }
                if !T::NEEDS_WALK {
                    return self.shallow_size_of_excluding_this(ops);
                }
                // SAFETY: the elements start the block, which was allocated for the capacity.
                unsafe { ops.block_with_contents(self.as_slice(), array::<T>(self.capacity()).size()) }
            }
        }
    )*};
}
slice!(Vec, BinaryHeap);

each_element!([T] Vec<T>, T, |vec| vec.iter(), |ops| {
    // SAFETY: the elements start the block, which was allocated for the capacity.
    unsafe { ops.block(vec.as_ptr(), array::<T>(vec.capacity())) }
});
each_element!([T] BinaryHeap<T>, T, |heap| heap.iter(), |ops| {
    // SAFETY: a `BinaryHeap` is a `Vec`, whose elements start the block, which was allocated for the capacity.
    unsafe { ops.block(heap.as_slice().as_ptr(), array::<T>(heap.capacity())) }
});

impl<T: MallocSizeOf> MallocSizeOf for LinkedList<T> {
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if T::NEEDS_WALK || ops.wants_names() {
            self.size_of_each(ops, T::size_of_excluding_this)
        } else {
            self.shallow_size_of_excluding_this(ops)
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T> MallocSizeOfEach for LinkedList<T> {
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
        elements(self.iter(), ops, |element, ops| {
            ops.enclosing(element, list::node::<T>()) + ops.contents(|ops| each(element, ops))
        })
    }
}
