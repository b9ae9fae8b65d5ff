//! Loads `libdmd.so` into a running process, and calls a function of this library there, for `about-memory attach`.
//!
//! A thread of the process makes the calls, so the crate has to find a thread that holds no lock of the loader, of the
//! allocator or of the C library. It stops one thread at a time, walks its stack from outside, and lets the thread go
//! if a frame is in code that may hold such a lock. All other threads run on during the calls. Afterwards the thread
//! has all its registers back, and a system call that was interrupted continues.
//!
//! The library reaches the process by a descriptor of a file without a name, so no other user can replace it.
//!
//! ```no_run
//! # #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
//! # fn example(library: &[u8]) -> Result<(), dmd_attach::AttachError> {
//! let request = dmd_attach::AttachRequest::new(library, "/run/user/1000/about-memory".as_ref());
//! let attached = dmd_attach::attach(1234, &request)?;
//! println!("{} references changed", attached.slots);
//! dmd_attach::detach(1234)?;
//! # Ok(())
//! # }
//! ```
//!
//! # How the parts work together
//!
//! ```text
//! request     the options and the replies
//! session     attach and detach: the steps, each a call in the process
//! keeper      a child process that makes the steps, so that a thread always gets its registers back
//! call        one call of a function by a stopped thread
//! copies      addresses of functions in registers and on stacks
//! stopped_process   changes of code while all threads are stopped
//! moment      chooses the thread
//! unwind      the frames of a stopped thread
//! object      an ELF object in the memory of the process: symbols, unwind tables
//! target      the process: memory, mappings, threads, and the reasons to refuse it
//! ptrace      the system calls
//! arch        registers
//! ```
//!
//! # Limits
//!
//! A process needs glibc. If SIGKILL ends the child process of about-memory in the milliseconds of a call, the thread
//! does not get its registers back, and the process ends. On other systems than Linux on `x86_64` and `aarch64`,
//! `attach` and `detach` return an error.

#![deny(unsafe_code)]

cfg_if::cfg_if! {
    if #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))] {
        #[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
        #[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
        mod arch;
        mod call;
        mod copies;
        #[allow(unsafe_code, reason = "makes a process")]
        mod keeper;
        mod moment;
        mod object;
        #[allow(unsafe_code, reason = "system calls")]
        mod ptrace;
        mod session;
        mod stopped_process;
        mod target;
        mod unwind;

        pub use session::{attach, detach};
        pub use target::{processes_named, sees_same_files, user_and_variable};
    } else {
        mod unsupported;

        pub use unsupported::{attach, detach, processes_named, sees_same_files, user_and_variable};
    }
}

mod error;
mod request;

pub use error::AttachError;
pub use request::{AttachReply, AttachRequest, DetachReply, StaticAllocator};
