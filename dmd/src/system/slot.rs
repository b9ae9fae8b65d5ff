//! What each thread has of its own: the guard against re-entry, and what else must be known without a lock.
//!
//! The slot, with the guard ([`inside`]), lies in a thread-local of the initial-exec model, written in assembly since
//! the language has no word for it: any other model may call `malloc` to make room, or wait for the loader's lock.

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
    /// Holds all locks, for a fork.
    pub(crate) forking: Cell<bool>,
    /// Past the end of its thread-specific data: what it leases it gives back at once.
    pub(crate) ending: Cell<bool>,
    /// How many locks it holds.
    pub(crate) locks: Cell<u16>,
    /// The run of reporters that this thread reports for; 0 if for none.
    pub(crate) run: Cell<u32>,
    /// The reporter of that run; 0 if it is none.
    pub(crate) reporter: Cell<u32>,
    /// What it has leased, of a type that only whoever leases it knows.
    pub(crate) state: Cell<*mut c_void>,
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
    // SAFETY: reads the thread pointer and the slot's distance from it.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + dmd_thread_slot@GOTTPOFF]",
            out(reg) address,
            options(nostack, pure, readonly),
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
    // SAFETY: reads the thread pointer and the slot's distance from it.
    unsafe {
        core::arch::asm!(
            "mrs {0}, tpidr_el0",
            "adrp {1}, :gottprel:dmd_thread_slot",
            "ldr {1}, [{1}, #:gottprel_lo12:dmd_thread_slot]",
            "add {0}, {0}, {1}",
            out(reg) address,
            out(reg) _,
            options(nostack, pure, readonly),
        );
    }
    // SAFETY: 128 zeroed bytes that only this thread refers to; the reference does not leave the thread.
    unsafe { &*address }
}

/// Whether the stack has room for what the engine does.
#[inline(always)]
pub(crate) fn has_room() -> bool {
    slot().room.is_below(inside::stack_pointer())
}
