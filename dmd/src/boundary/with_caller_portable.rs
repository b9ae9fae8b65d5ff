//! Functions that pass on a place on the stack below the hook's frame.

/// Passes on an address in its own frame, and 0: frames further in belong to DMD. Before it comes `None` if the callee takes a
/// function that this one has not. `[unsafe]` before the name is for functions with a contract.
macro_rules! with_caller {
    ($(#[$doc:meta])* [unsafe] $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?
        => $to:ident, [$x86_place:literal, $x86_fp:literal], [$arm_place:literal, $arm_fp:literal]) => {
        $(#[$doc])*
        #[inline(never)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // The callee may look at the place, so that this frame stays as long as the call.
            let here = 0_usize;
            let here = core::hint::black_box(&raw const here).addr();
            // SAFETY: the caller keeps the contract of this function, which is that of the callee.
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
            // SAFETY: the callee's contract is about the function that it gets, and it gets none.
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
