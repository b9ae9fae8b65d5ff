//! libdmd.so: DMD for any Linux program, by `LD_PRELOAD`.
//!
//! The library forwards every call to the function that the program would have called without it, and records the
//! block. It exports `malloc` and its family, `mmap` and its family, and the entry points of `dmd.h`. It also exports
//! functions that install filters of system calls, install handlers of signals, start programs or wait for children,
//! and functions that the engine's own threads would disturb. On other systems than Linux, the library is empty.
//!
//! `about-memory attach` loads the library into a process that runs already: see `attached`.

#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "functions for C")]
mod allocator_hooks;
#[allow(unsafe_code, reason = "functions for C")]
mod alone;
#[allow(unsafe_code, reason = "functions for C")]
mod attached;
#[allow(unsafe_code, reason = "memory from before the real functions are known")]
mod bootstrap;
#[allow(unsafe_code, reason = "functions for C")]
mod children;
#[allow(unsafe_code, reason = "functions for C")]
mod confine;
#[allow(unsafe_code, reason = "functions for C")]
mod connect;
#[allow(unsafe_code, reason = "functions for C")]
mod ending;
mod executable;
#[allow(unsafe_code, reason = "asks the loader")]
mod injected;
#[allow(unsafe_code, reason = "functions for C, and naked ones")]
mod later_objects;
#[allow(unsafe_code, reason = "asks the loader, and reads loaded files")]
mod loaded_objects;
#[allow(unsafe_code, reason = "functions for C")]
mod malloc;
#[allow(unsafe_code, reason = "functions for C")]
mod mappings;
#[allow(unsafe_code, reason = "a function for C")]
mod plugins;
#[allow(unsafe_code, reason = "functions for C")]
mod programs;
#[allow(unsafe_code, reason = "asks the loader")]
mod real;
#[allow(unsafe_code, reason = "changes references of loaded objects")]
mod redirect;
#[allow(unsafe_code, reason = "writes to the program's memory")]
mod redirections;
#[allow(unsafe_code, reason = "runs before main")]
mod start;
#[allow(unsafe_code, reason = "asks the system")]
mod stat_by_number;
mod static_allocators;
#[allow(unsafe_code, reason = "functions for C")]
mod thread_counts;
#[allow(unsafe_code, reason = "functions for C")]
mod thread_locals;

/// Rust code in this library allocates outside of the measured heap.
#[global_allocator]
static INTERNAL: engine::__private::InternalAllocator = engine::__private::InternalAllocator;
