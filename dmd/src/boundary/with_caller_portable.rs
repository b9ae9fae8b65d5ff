//! Functions that pass on a place on the stack below the hook's frame.

/// Passes on an address in its own frame: frames further in belong to DMD. `[unsafe]` before the name is for functions with a contract.
macro_rules! with_caller {
    ($(#[$doc:meta])* $([$unsafe:ident])? $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $(, $value:expr, $x86_value:literal, $arm_value:literal)?
        => $to:ident, $x86:literal, $arm:literal) => {
        $(#[$doc])*
        #[inline(never)]
        pub(crate) $($unsafe)? extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // The callee may look at the place, so that this frame stays as long as the call.
            let here = 0_usize;
            let here = core::hint::black_box(&raw const here).addr();
            // SAFETY: the caller of an unsafe function keeps the contract, which is that of the callee, and a safe one passes
            // nothing that the callee has a contract for.
            #[allow(unused_unsafe, reason = "other callees are safe")]
            unsafe {
                $to($($argument,)* $($value,)? here)
            }
        }
    };
}

pub(crate) use with_caller;
