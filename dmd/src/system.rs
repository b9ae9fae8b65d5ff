//! The parts of the system that the engine needs, made to run inside an allocation: memory, locks, the thread's own
//! slot, forks, the process among others. They know nothing about recorded blocks.

#[allow(unsafe_code, reason = "starts a thread")]
pub(crate) mod background;
#[allow(unsafe_code, reason = "reads a register")]
pub(crate) mod clock;
#[allow(unsafe_code, reason = "a system call")]
pub(crate) mod confined;
#[allow(unsafe_code, reason = "writes a variable of the C library")]
pub(crate) mod errno;
#[allow(unsafe_code, reason = "registers handlers")]
pub(crate) mod fork;
#[allow(unsafe_code, reason = "an allocator")]
pub(crate) mod internal_alloc;
#[allow(unsafe_code, reason = "a lock")]
pub(crate) mod lock;
#[allow(unsafe_code, reason = "system calls")]
pub(crate) mod log;
#[allow(unsafe_code, reason = "maps memory")]
pub(crate) mod memory;
#[cfg_attr(engine = "portable", path = "system/own_stack_portable.rs")]
#[allow(unsafe_code, reason = "goes to another stack and back")]
pub(crate) mod own_stack;
#[allow(unsafe_code, reason = "an allocator of pages")]
pub(crate) mod pages;
#[allow(unsafe_code, reason = "changes the environment before main")]
pub(crate) mod process;
pub(crate) mod process_id;
#[allow(unsafe_code, reason = "masks signals")]
pub(crate) mod signals;
#[allow(unsafe_code, reason = "a thread-local without the language's")]
pub(crate) mod slot;
#[cfg_attr(engine = "portable", path = "system/waiting_portable.rs")]
#[allow(unsafe_code, reason = "system calls")]
mod waiting;
