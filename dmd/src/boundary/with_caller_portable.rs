//! Functions that pass on a place on the stack below the hook's frame.

/// Passes on an address in its own frame: frames further in belong to DMD.
macro_rules! with_caller {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $(, $value:expr, $x86_value:literal, $arm_value:literal)?
        => $to:ident, $x86:literal, $arm:literal) => {
        $(#[$doc])*
        #[inline(never)]
        pub(crate) extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // The callee may look at the place, so that this frame stays as long as the call.
            let here = 0_usize;
            $to($($argument,)* $($value,)? core::hint::black_box(&raw const here).addr())
        }
    };
}

pub(crate) use with_caller;
