//! The data of each thread: the guard against re-entry, and what else the engine must know without a lock.
//!
//! The slot, with the guard ([`inside`]), lies in a thread-local of the initial-exec model: any other model may
//! call `malloc` to make room, or wait for the loader's lock. It is written in assembly, since Rust cannot choose
//! the model.

mod inside;
mod room;

use core::cell::Cell;
use core::ffi::c_void;

pub(crate) use inside::{Guard, Inside, jumps};
use room::Room;

/// The thread-local part. All zero at first.
#[repr(C)]
pub(crate) struct ThreadSlot {
    pub(crate) guard: Guard,
    /// This thread holds all locks, for a fork.
    pub(crate) forking: Cell<bool>,
    /// This thread is past the end of its thread-specific data: it returns what it leases at once.
    pub(crate) ending: Cell<bool>,
    /// Number of locks that this thread holds.
    pub(crate) locks: Cell<u16>,
    /// The run that this thread reports for; 0 if none.
    pub(crate) run: Cell<u32>,
    /// The reporter of that run; 0 if none.
    pub(crate) reporter: Cell<u32>,
    /// The state that this thread has leased, of a type that only its pool knows.
    pub(crate) state: Cell<*mut c_void>,
    /// Bytes up to the next sampled one, and the session of sampling that drew them.
    pub(crate) skip: Cell<usize>,
    pub(crate) session: Cell<u32>,
    room: Room,
}

const _: () = assert!(size_of::<ThreadSlot>() <= 128);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
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
    // SAFETY: reads the thread pointer, and the slot's distance from it, which the loader has set. No Rust code writes
    // either, and both stay the same while a function of the engine runs: it makes no difference when, or how often,
    // the assembly reads them. So `nomem` only lets the compiler read them once.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + dmd_thread_slot@GOTTPOFF]",
            out(reg) address,
            options(nostack, pure, nomem),
        );
    }
    // SAFETY: 128 zeroed bytes that only this thread refers to; the reference does not leave the thread.
    unsafe { &*address }
}

/// This thread's slot.
#[inline(always)]
#[cfg(target_arch = "aarch64")]
pub(crate) fn slot() -> &'static ThreadSlot {
    let address: *const ThreadSlot;
    // SAFETY: reads the thread pointer, and the slot's distance from it, which the loader has set. No Rust code writes
    // either, and both stay the same while a function of the engine runs: it makes no difference when, or how often,
    // the assembly reads them. So `nomem` only lets the compiler read them once.
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
    // SAFETY: 128 zeroed bytes that only this thread refers to; the reference does not leave the thread.
    unsafe { &*address }
}

/// Whether the stack has room for the engine.
#[inline(always)]
pub(crate) fn has_room() -> bool {
    slot().room.is_below(inside::stack_pointer())
}
