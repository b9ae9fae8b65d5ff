//! Function pointers, which own no heap, and closures behind `dyn`: the walk counts the box of a closure, and records
//! the captures as skipped.
//!
//! Functions over references of any lifetime (`fn(&A)`, `for<'a> fn(&'a A) -> &'a Ret`) are separate types, and no
//! single impl can cover all of them. This file lists the usual types with references, with up to three arguments, and
//! types without lifetimes, with up to twelve arguments. With the derive, a field that is such a pointer needs no impl.

use crate::measure::impls::dynamic::hidden_behind;

macro_rules! pointers {
    ([$($generics:tt)*] ($($argument:ty),*)) => {
        pointers!(@ [$($generics)*] fn($($argument),*) -> Ret);
        pointers!(@ [$($generics)*] unsafe fn($($argument),*) -> Ret);
        pointers!(@ [$($generics)*] extern "C" fn($($argument),*) -> Ret);
        pointers!(@ [$($generics)*] unsafe extern "C" fn($($argument),*) -> Ret);
    };
    (@ [$($generics:tt)*] $function:ty) => {
        #[allow(coherence_leak_check, reason = "`fn(&A)` is not `fn(A)`")]
        impl<$($generics)*> $crate::MallocSizeOf for $function {
            const NEEDS_WALK: bool = false;

            #[inline]
            fn size_of_excluding_this<R: $crate::Reading>(
                &self,
                _: &mut $crate::MallocSizeOfOps<R>,
            ) -> usize {
                0
            }
        }
    };
}

/// Implements `MallocSizeOf` for function pointers whose result is borrowed from an argument.
macro_rules! borrowing {
    ($([$($generics:tt)*] $arguments:tt;)*) => {$(
        borrowing!(@ [$($generics)*] $arguments &'a Ret);
        borrowing!(@ [$($generics)*] $arguments &'a mut Ret);
        borrowing!(@ [$($generics)*] $arguments Option<&'a Ret>);
        borrowing!(@ [$($generics)*] $arguments Option<&'a mut Ret>);
    )*};
    (@ [$($generics:tt)*] ($($argument:ty),*) $result:ty) => {
        pointers!(@ [$($generics)*, Ret: ?Sized] for<'a> fn($($argument),*) -> $result);
        pointers!(@ [$($generics)*, Ret: ?Sized] for<'a> unsafe fn($($argument),*) -> $result);
        pointers!(@ [$($generics)*, Ret: ?Sized] for<'a> extern "C" fn($($argument),*) -> $result);
        pointers!(@ [$($generics)*, Ret: ?Sized] for<'a> unsafe extern "C" fn($($argument),*) -> $result);
    };
}
borrowing!(
    [A: ?Sized] (&'a A);
    [A: ?Sized] (&'a mut A);
    [A: ?Sized, B] (&'a A, B);
    [A: ?Sized, B] (&'a mut A, B);
    [A: ?Sized, B: ?Sized] (&'a A, &B);
    [A: ?Sized, B: ?Sized] (&'a mut A, &B);
    [A: ?Sized, B: ?Sized] (&'a A, &'a B);
    [A, B: ?Sized] (A, &'a B);
    [A, B: ?Sized] (A, &'a mut B);
    [A: ?Sized, B, C] (&'a A, B, C);
    [A: ?Sized, B, C] (&'a mut A, B, C);
);

macro_rules! closures {
    ([$($generics:tt)*] ($($argument:ty),*)) => {
        hidden_behind!([$($generics)*] Fn($($argument),*) -> Ret);
        hidden_behind!([$($generics)*] FnMut($($argument),*) -> Ret);
        hidden_behind!([$($generics)*] FnOnce($($argument),*) -> Ret);
    };
}

macro_rules! both {
    ($([$($generics:tt)*] $arguments:tt;)*) => {$(
        pointers!([$($generics)*] $arguments);
        closures!([$($generics)*] $arguments);
    )*};
}
both!(
    [Ret] ();
    [A, Ret] (A);
    [A, B, Ret] (A, B);
    [A, B, C, Ret] (A, B, C);
    [A, B, C, D, Ret] (A, B, C, D);
    [A, B, C, D, E, Ret] (A, B, C, D, E);
    [A, B, C, D, E, F, Ret] (A, B, C, D, E, F);
    [A: ?Sized, Ret] (&A);
    [A: ?Sized, Ret] (&mut A);
    [A: ?Sized, B, Ret] (&A, B);
    [A: ?Sized, B, Ret] (&mut A, B);
    [A: ?Sized, B: ?Sized, Ret] (&A, &B);
    [A: ?Sized, B: ?Sized, Ret] (&mut A, &B);
    [A: ?Sized, B: ?Sized, Ret] (&A, &mut B);
    [A: ?Sized, B: ?Sized, Ret] (&mut A, &mut B);
    [A, B: ?Sized, Ret] (A, &B);
    [A, B: ?Sized, Ret] (A, &mut B);
);
hidden_behind!([A: ?Sized, Ret: ?Sized] for<'a> Fn(&'a A) -> &'a Ret);
hidden_behind!([A: ?Sized, Ret: ?Sized] for<'a> FnMut(&'a A) -> &'a Ret);
hidden_behind!([A: ?Sized, Ret: ?Sized] for<'a> FnOnce(&'a A) -> &'a Ret);
hidden_behind!([A: ?Sized, Ret: ?Sized] for<'a> Fn(&'a mut A) -> &'a mut Ret);
hidden_behind!([A: ?Sized, Ret: ?Sized] for<'a> FnMut(&'a mut A) -> &'a mut Ret);
hidden_behind!([A: ?Sized, Ret: ?Sized] for<'a> FnOnce(&'a mut A) -> &'a mut Ret);
pointers!([A: ?Sized, B, C, Ret](&A, B, C));
pointers!([A: ?Sized, B, C, Ret](&mut A, B, C));
pointers!([A: ?Sized, B: ?Sized, C, Ret](&A, &B, C));
pointers!([A: ?Sized, B: ?Sized, C, Ret](&mut A, &B, C));
pointers!([A: ?Sized, B: ?Sized, C: ?Sized, Ret](&A, &B, &C));
pointers!([A: ?Sized, B: ?Sized, C: ?Sized, Ret](&mut A, &B, &C));
pointers!([A, B, C, D, E, F, G, Ret](A, B, C, D, E, F, G));
pointers!([A, B, C, D, E, F, G, H, Ret](A, B, C, D, E, F, G, H));
pointers!([A, B, C, D, E, F, G, H, I, Ret](A, B, C, D, E, F, G, H, I));
pointers!([A, B, C, D, E, F, G, H, I, J, Ret](A, B, C, D, E, F, G, H, I, J));
pointers!([A, B, C, D, E, F, G, H, I, J, K, Ret](A, B, C, D, E, F, G, H, I, J, K));
pointers!([A, B, C, D, E, F, G, H, I, J, K, L, Ret](A, B, C, D, E, F, G, H, I, J, K, L));
