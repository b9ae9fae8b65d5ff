//! Functions that hand on where they were called from.

/// Hands on its own return address, which lies in the hook: frames further in are ours.
macro_rules! with_caller {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? => $to:ident, $x86:literal, $arm:literal) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(concat!("mov ", $x86, ", qword ptr [rsp]"), "jmp {}", sym $to);
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(concat!("mov ", $arm, ", x30"), "b {}", sym $to);
        }
    };
}

pub(crate) use with_caller;
