//! The slot as a thread-local in the initial-exec model. Any other model may call `malloc` to make room, or may wait
//! for the loader's lock. The slot is written in assembly, since Rust cannot choose the model.

use super::ThreadSlot;

const _: () = assert!(size_of::<ThreadSlot>() <= 128);

core::arch::global_asm!(
    ".pushsection .tbss.dmd_thread_slot,\"awT\",@nobits",
    ".globl dmd_thread_slot",
    ".hidden dmd_thread_slot",
    ".type dmd_thread_slot, %object",
    ".size dmd_thread_slot, 128",
    ".p2align 6",
    "dmd_thread_slot:",
    ".zero 128",
    ".popsection",
);

/// This thread's slot.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(crate) fn slot() -> &'static ThreadSlot {
    let address: *const ThreadSlot;
    // SAFETY: the assembly reads the thread pointer, and the slot's distance from it, which the loader has set. No
    // Rust code writes either, and both stay the same while a function of the engine runs. So it does not matter when,
    // or how often, the assembly reads them: `nomem` only lets the compiler read them once.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + dmd_thread_slot@GOTTPOFF]",
            out(reg) address,
            options(nostack, pure, nomem),
        );
    }
    // SAFETY: the address has 128 zeroed bytes that only this thread uses, and the reference does not leave the
    // thread.
    unsafe { &*address }
}

/// This thread's slot.
#[inline(always)]
#[cfg(target_arch = "aarch64")]
pub(crate) fn slot() -> &'static ThreadSlot {
    let address: *const ThreadSlot;
    // SAFETY: the assembly reads the thread pointer, and the slot's distance from it, which the loader has set. No
    // Rust code writes either, and both stay the same while a function of the engine runs. So it does not matter when,
    // or how often, the assembly reads them: `nomem` only lets the compiler read them once.
    unsafe {
        core::arch::asm!(
            "mrs {0}, tpidr_el0",
            "adrp {1}, :gottprel:dmd_thread_slot",
            "ldr {1}, [{1}, #:gottprel_lo12:dmd_thread_slot]",
            "add {0}, {0}, {1}",
            out(reg) address,
            out(reg) _,
            options(nostack, pure, nomem),
        );
    }
    // SAFETY: the address has 128 zeroed bytes that only this thread uses, and the reference does not leave the
    // thread.
    unsafe { &*address }
}

/// The register with the address of this thread's thread-locals.
pub(crate) fn thread_pointer() -> usize {
    let address: usize;
    // SAFETY: the instruction reads the thread pointer. In the ABI of x86-64, the word at the thread pointer is its
    // own address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("mov {0}, qword ptr fs:[0]", out(reg) address, options(nostack, pure, readonly));
    }
    // SAFETY: the instruction reads a register.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("mrs {0}, tpidr_el0", out(reg) address, options(nostack, pure, nomem));
    }
    address
}
