//! Types that contain their parts in place: options, tuples, arrays, ranges and thin wrappers.

use core::{cmp, mem, num, ops, panic, task};

use crate::measure::block::Edge;
use crate::measure::malloc_size_of::MallocSizeOf;
use crate::measure::ops::MallocSizeOfOps;
use crate::measure::reading::Reading;

impl<T: MallocSizeOf> MallocSizeOf for Option<T> {
    const NEEDS_WALK: bool = T::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        match self {
            Some(value) => value.size_of_excluding_this(ops),
            None => 0,
        }
    }
}

/// Implements `MallocSizeOf` for enums whose variants contain at most one value.
macro_rules! variants {
    ($type:ty, [$($generic:ident),*], $($variant:path),* ; $($empty:pat)?) => {
        impl<$($generic: $crate::MallocSizeOf),*> $crate::MallocSizeOf for $type {
            const NEEDS_WALK: bool = false $(|| $generic::NEEDS_WALK)*;

            #[inline]
            fn size_of_excluding_this<R: $crate::Reading>(
                &self,
                ops: &mut $crate::MallocSizeOfOps<R>,
            ) -> usize {
                match self {
                    $($variant(value) => value.size_of_excluding_this(ops),)*
                    $($empty => 0,)?
                }
            }
        }
    };
}
pub(crate) use variants;
variants!(Result<T, E>, [T, E], Ok, Err;);
variants!(ops::ControlFlow<B, C>, [B, C], ops::ControlFlow::Break, ops::ControlFlow::Continue;);
variants!(task::Poll<T>, [T], task::Poll::Ready; task::Poll::Pending);
variants!(ops::Bound<T>, [T], ops::Bound::Included, ops::Bound::Excluded; ops::Bound::Unbounded);

/// Implements `MallocSizeOf` for structs whose parts are accessible.
macro_rules! parts {
    ($type:ty, [$($generic:ident),*], $self:ident, $($part:expr),+) => {
        impl<$($generic: $crate::MallocSizeOf),*> $crate::MallocSizeOf for $type {
            const NEEDS_WALK: bool = false $(|| $generic::NEEDS_WALK)*;

            #[inline]
            fn size_of_excluding_this<R: $crate::Reading>(
                &$self,
                ops: &mut $crate::MallocSizeOfOps<R>,
            ) -> usize {
                0 $(+ $part.size_of_excluding_this(ops))+
            }
        }
    };
}
pub(crate) use parts;
parts!(cmp::Reverse<T>, [T], self, self.0);
parts!(num::Wrapping<T>, [T], self, self.0);
parts!(num::Saturating<T>, [T], self, self.0);
parts!(panic::AssertUnwindSafe<T>, [T], self, self.0);
parts!(ops::Range<T>, [T], self, self.start, self.end);
parts!(ops::RangeInclusive<T>, [T], self, self.start(), self.end());
parts!(ops::RangeFrom<T>, [T], self, self.start);
parts!(ops::RangeTo<T>, [T], self, self.end);
parts!(ops::RangeToInclusive<T>, [T], self, self.end);

impl<T: MallocSizeOf + ?Sized> MallocSizeOf for mem::ManuallyDrop<T> {
    const NEEDS_WALK: bool = T::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        (**self).size_of_excluding_this(ops)
    }
}

impl<T: MallocSizeOf, const N: usize> MallocSizeOf for [T; N] {
    const NEEDS_WALK: bool = T::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        self.as_slice().size_of_excluding_this(ops)
    }
}

impl<T: MallocSizeOf> MallocSizeOf for [T] {
    const NEEDS_WALK: bool = T::NEEDS_WALK;

    #[inline]
    fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
        if !T::NEEDS_WALK && !ops.wants_names() {
            return 0;
        }
        let mut bytes = 0_usize;
        for element in self {
            bytes = bytes.saturating_add(ops.element(element));
        }
        bytes
    }
}

macro_rules! tuples {
    ($($name:ident $index:tt),*) => {
        impl<$($name: MallocSizeOf),*> MallocSizeOf for ($($name,)*) {
            const NEEDS_WALK: bool = false $(|| $name::NEEDS_WALK)*;

            #[inline]
            fn size_of_excluding_this<R: Reading>(&self, ops: &mut MallocSizeOfOps<R>) -> usize {
                0 $(+ ops.part(Edge::Field(stringify!($index)), &self.$index))*
            }
        }
    };
}
tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
