//! Functions that pass an address on the stack, below the hook's frame, on to another function.

/// Defines a function that passes an address in its own frame, and 0, on to the callee. Inner frames belong to DMD. If
/// the callee takes a function as an argument, but the defined function has no such argument, the defined function
/// passes `None` before the address. `[unsafe]` before the name marks functions with a contract.
macro_rules! with_caller {
    ($(#[$doc:meta])* [unsafe] $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?
        => $to:ident, [$x86_place:literal, $x86_fp:literal], [$arm_place:literal, $arm_fp:literal]) => {
        $(#[$doc])*
        #[inline(never)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // The callee may read this place, so the frame must exist during the call.
            let here = 0_usize;
            let here = core::hint::black_box(&raw const here).addr();
            // SAFETY: the caller keeps the contract of this function, and the callee has the same contract.
            unsafe { $to($($argument,)* here, 0) }
        }
    };
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?, None, $x86_value:literal, $arm_value:literal
        => $to:ident, [$x86_place:literal, $x86_fp:literal], [$arm_place:literal, $arm_fp:literal]) => {
        $(#[$doc])*
        #[inline(never)]
        pub(crate) extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            let here = 0_usize;
            let here = core::hint::black_box(&raw const here).addr();
            // SAFETY: the callee's contract is about the function that it gets, and the function is `None` here.
            unsafe { $to($($argument,)* None, here, 0) }
        }
    };
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?
        => $to:ident, [$x86_place:literal, $x86_fp:literal], [$arm_place:literal, $arm_fp:literal]) => {
        $(#[$doc])*
        #[inline(never)]
        pub(crate) extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            let here = 0_usize;
            let here = core::hint::black_box(&raw const here).addr();
            $to($($argument,)* here, 0)
        }
    };
}

pub(crate) use with_caller;
