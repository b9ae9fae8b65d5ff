//! Pointers to functions, which own nothing, and closures behind `dyn`, whose box is seen and whose
//! captures are recorded as not seen.
//!
//! Functions over a reference of any lifetime (`fn(&A)`) are types of their own: the usual ones
//! of up to two arguments are listed.

use crate::impls::dynamic::hidden_behind;

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
pointers!([A, B, C, D, E, F, G, Ret](A, B, C, D, E, F, G));
pointers!([A, B, C, D, E, F, G, H, Ret](A, B, C, D, E, F, G, H));
pointers!([A, B, C, D, E, F, G, H, I, Ret](A, B, C, D, E, F, G, H, I));
pointers!([A, B, C, D, E, F, G, H, I, J, Ret](A, B, C, D, E, F, G, H, I, J));
pointers!([A, B, C, D, E, F, G, H, I, J, K, Ret](A, B, C, D, E, F, G, H, I, J, K));
pointers!([A, B, C, D, E, F, G, H, I, J, K, L, Ret](A, B, C, D, E, F, G, H, I, J, K, L));
