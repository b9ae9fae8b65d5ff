//! Functions that pass the place of their call on to another function.

/// Defines a function that passes the two words of its own [caller](crate::tables::stack::Caller) on to the callee. The
/// caller is the hook: inner frames belong to DMD. The second word is 0 on aarch64. Before the words, the function may
/// pass another argument: the macro takes the argument's value, and the instructions that load the value. `[unsafe]`
/// before the name marks functions with a contract.
macro_rules! with_caller {
    ($(#[$doc:meta])* $([$unsafe:ident])? $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $(, $value:expr, $x86_value:literal, $arm_value:literal)?
        => $to:ident, [$x86_place:literal, $x86_fp:literal], [$arm_place:literal, $arm_fp:literal]) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) $($unsafe)? extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                $($x86_value,)?
                concat!("lea ", $x86_place, ", [rsp + 8]"),
                concat!("mov ", $x86_fp, ", rbp"),
                "jmp {}",
                sym $to,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                $($arm_value,)?
                concat!("mov ", $arm_place, ", x30"),
                concat!("mov ", $arm_fp, ", xzr"),
                "b {}",
                sym $to,
            );
        }
    };
}

pub(crate) use with_caller;
