//! Functions that pass on the place that they were called from.

/// Passes on its own return address, which lies in the hook: frames further in belong to DMD. Before it comes another
/// argument if there is one: its value, and the instructions for that. `[unsafe]` before the name is for functions with a contract.
macro_rules! with_caller {
    ($(#[$doc:meta])* $([$unsafe:ident])? $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $(, $value:expr, $x86_value:literal, $arm_value:literal)?
        => $to:ident, $x86:literal, $arm:literal) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) $($unsafe)? extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!($($x86_value,)? concat!("mov ", $x86, ", qword ptr [rsp]"), "jmp {}", sym $to);
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!($($arm_value,)? concat!("mov ", $arm, ", x30"), "b {}", sym $to);
        }
    };
}

pub(crate) use with_caller;
