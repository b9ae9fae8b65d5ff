//! The data of each thread that the engine needs without a lock, with the guard against re-entry.
//!
//! The slot contains the guard ([`inside`]). Access to the slot neither allocates through a hook nor takes a lock.

#[cfg(engine = "portable")]
mod any_room;
mod inside;
#[cfg(engine = "native")]
mod native;
#[cfg(engine = "portable")]
mod portable;
#[cfg(engine = "native")]
mod room;

use core::cell::Cell;
use core::ffi::c_void;

#[cfg(engine = "portable")]
use any_room::{StackRange, StackRoom};
#[cfg(engine = "native")]
use dmd_unwind::StackRange;
pub(crate) use inside::{Guard, Inside, jumps, on_jump};
#[cfg(engine = "native")]
pub(crate) use native::{slot, thread_pointer};
#[cfg(engine = "portable")]
pub(crate) use portable::{slot, thread_pointer};
#[cfg(engine = "native")]
use room::StackRoom;

/// The slot of a thread. All zero at first.
#[repr(C)]
pub(crate) struct ThreadSlot {
    pub(crate) guard: Guard,
    /// Whether this thread holds all locks for a fork.
    pub(crate) forking: Cell<bool>,
    /// Whether this thread has given its lease back in the last round of destructors of thread-specific data: it gives
    /// every new lease back at once.
    pub(crate) ending: Cell<bool>,
    /// The number of rounds of destructors of thread-specific data that this thread has started.
    pub(crate) end_rounds: Cell<u8>,
    /// The number of locks that this thread holds.
    pub(crate) locks: Cell<u16>,
    /// The run for which this thread reports; 0 if this thread runs no reporter.
    pub(crate) run: Cell<u32>,
    /// The reporter that this thread runs; 0 if this thread runs no reporter.
    pub(crate) reporter: Cell<u32>,
    /// The lease of this thread, without its type: only the pool of leases uses the type.
    pub(crate) state: Cell<*mut c_void>,
    /// The number of bytes until the next sampled byte.
    pub(crate) skip: Cell<usize>,
    pub(crate) session: Cell<u32>,
    /// The number of this thread, the same for all its leases; 0 before its first lease.
    pub(crate) thread: Cell<u32>,
    /// The engine thread's number plus 1 if this thread is an engine thread; 0 for other threads.
    #[cfg(engine = "native")]
    pub(crate) engine_thread: Cell<u16>,
    room: StackRoom,
}

/// Whether the stack has enough room for the engine.
#[inline(always)]
pub(crate) fn has_room() -> bool {
    slot().room.is_below(inside::stack_pointer())
}
