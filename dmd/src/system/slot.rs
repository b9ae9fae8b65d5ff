//! The data of each thread: the guard against re-entry, and what else the engine must know without a lock.
//!
//! The slot has the guard ([`inside`]). Reaching it neither allocates through a hook nor takes a lock.

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

/// The thread-local part. All zero at first.
#[repr(C)]
pub(crate) struct ThreadSlot {
    pub(crate) guard: Guard,
    /// This thread holds all locks, for a fork.
    pub(crate) forking: Cell<bool>,
    /// This thread is past the end of its thread-specific data: it returns what it leases at once.
    pub(crate) ending: Cell<bool>,
    /// Rounds of destructors of thread-specific data that this thread has begun.
    pub(crate) end_rounds: Cell<u8>,
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
    /// The number of this thread, which it keeps for all its leases; 0 before the first one.
    pub(crate) thread: Cell<u32>,
    /// The engine thread's number plus 1 if this thread is an engine thread; 0 for other threads.
    #[cfg(engine = "native")]
    pub(crate) engine_thread: Cell<u16>,
    room: StackRoom,
}

/// Whether the stack has room for the engine.
#[inline(always)]
pub(crate) fn has_room() -> bool {
    slot().room.is_below(inside::stack_pointer())
}
