//! The parts of the system that the engine needs: memory, locks, the thread's own slot, forks, names of the process's
//! files. They can run inside an allocation, and do not use the table of blocks.

#[cfg_attr(not(target_os = "linux"), path = "system/background_none.rs")]
#[allow(unsafe_code, reason = "starts a thread")]
pub(crate) mod background;
#[cfg(target_os = "linux")]
pub(crate) mod bell;
#[allow(unsafe_code, reason = "reads a register")]
pub(crate) mod clock;
#[allow(unsafe_code, reason = "a system call")]
pub(crate) mod confined;
#[cfg_attr(not(target_os = "linux"), path = "system/copy_none.rs")]
#[cfg_attr(target_os = "linux", allow(unsafe_code, reason = "clones the process"))]
pub(crate) mod copy;
#[cfg(target_os = "linux")]
#[cfg_attr(engine = "portable", path = "system/engine_threads_none.rs")]
#[cfg_attr(engine = "native", allow(unsafe_code, reason = "starts threads"))]
pub(crate) mod engine_threads;
#[allow(unsafe_code, reason = "writes a variable of the C library")]
pub(crate) mod errno;
pub(crate) mod error_numbers;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a system call")]
pub(crate) mod folder_list;
#[allow(unsafe_code, reason = "registers handlers")]
pub(crate) mod fork;
#[allow(unsafe_code, reason = "an allocator")]
pub(crate) mod internal_alloc;
#[cfg(target_os = "linux")]
pub(crate) mod late_start;
#[cfg_attr(windows, path = "system/libraries_windows.rs")]
#[allow(unsafe_code, reason = "asks the loader")]
pub(crate) mod libraries;
#[allow(unsafe_code, reason = "a lock")]
pub(crate) mod lock;
pub(crate) mod log;
#[cfg_attr(windows, path = "system/mapping_windows.rs")]
#[allow(unsafe_code, reason = "system calls")]
mod mapping;
#[allow(unsafe_code, reason = "maps memory")]
pub(crate) mod memory;
#[allow(unsafe_code, reason = "system calls")]
pub(crate) mod own_memory;
#[cfg(unix)]
pub(crate) mod own_ranges;
#[cfg_attr(engine = "portable", path = "system/own_stack_portable.rs")]
#[allow(unsafe_code, reason = "switches to another stack and back")]
pub(crate) mod own_stack;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a request to the kernel")]
pub(crate) mod page_map;
#[allow(unsafe_code, reason = "an allocator of pages")]
pub(crate) mod pages;
pub(crate) mod path_bytes;
#[cfg_attr(not(all(feature = "probes", engine = "native")), path = "system/probes_none.rs")]
#[cfg_attr(feature = "probes", allow(unsafe_code, reason = "naked functions"))]
pub(crate) mod probes;
#[allow(unsafe_code, reason = "changes the environment before main")]
pub(crate) mod process;
pub(crate) mod process_id;
#[cfg_attr(target_os = "linux", allow(unsafe_code, reason = "reads random bytes of the kernel"))]
pub(crate) mod process_seed;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "system calls")]
pub(crate) mod raw_file;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "hands out memory")]
pub(crate) mod reserve;
#[cfg_attr(not(target_os = "linux"), path = "system/session_peer_none.rs")]
#[cfg_attr(target_os = "linux", allow(unsafe_code, reason = "uses a descriptor by its number"))]
pub(crate) mod session_peer;
#[cfg_attr(not(target_os = "linux"), path = "system/signals_none.rs")]
#[allow(unsafe_code, reason = "masks signals")]
pub(crate) mod signals;
#[allow(unsafe_code, reason = "a thread-local that Rust does not manage")]
pub(crate) mod slot;
#[cfg_attr(windows, path = "system/standard_error_windows.rs")]
#[allow(unsafe_code, reason = "system calls")]
mod standard_error;
#[allow(unsafe_code, reason = "registers a function")]
pub(crate) mod thread_end;
#[cfg_attr(not(target_os = "linux"), path = "system/threads_none.rs")]
#[cfg_attr(target_os = "linux", allow(unsafe_code, reason = "system calls"))]
pub(crate) mod threads;
#[cfg_attr(engine = "portable", path = "system/waiting_portable.rs")]
#[allow(unsafe_code, reason = "system calls")]
mod waiting;
