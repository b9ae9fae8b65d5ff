//! The reasons why a process cannot be attached to, each with what to do.

use core::fmt;
use std::io;

/// The reason why a process cannot be attached to, or detached from.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttachError {
    /// No process has this number, or it has ended.
    NoProcess,
    /// The process has ended during the attachment.
    Ended,
    /// The process has ended, and its parent has not collected it.
    Zombie,
    /// The main thread of the process has ended, and other threads run on.
    NoMainThread,
    /// The number is a thread of the kernel.
    KernelThread,
    /// The number is the process that attaches.
    Itself,
    /// The number is a thread of this process.
    ThreadOf(u32),
    /// Another process traces this process: its number.
    Traced(u32),
    /// A signal has stopped the process.
    Stopped,
    /// The process belongs to another user: the user's number.
    OtherUser(u32),
    /// The system forbids tracing the process.
    Forbidden(String),
    /// The process is a 32-bit program or for another processor.
    OtherMachine,
    /// The program is statically linked.
    Static,
    /// The program uses another C library: the name of its loader.
    OtherLibrary(String),
    /// The program is built with a sanitizer.
    Sanitizer,
    /// The loader of the process cannot open a descriptor by its name.
    NoKernelFiles,
    /// The process has a filter of system calls.
    Filter,
    /// The process has installed a filter of its system calls since the attachment.
    FilterSince,
    /// The processor checks return addresses of the process by a shadow stack.
    ShadowStack,
    /// The process has the library preloaded.
    Preloaded,
    /// The process is attached to already.
    Attached,
    /// The process is not attached to.
    NotAttached,
    /// All threads were at bad moments until the time limit: a reason of one of them.
    NoMoment(String),
    /// The loader of the process refuses the library: its message.
    Refused(String),
    /// Attaching or detaching failed for a reason that has no variant of its own: the message.
    Failed(String),
    /// A call in the process has not returned in time: the number of the process that waits for it.
    Slow(u32),
    /// A call of the system failed.
    Io(io::Error),
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcess => f.write_str("no process has this number"),
            Self::Ended => f.write_str("the process has ended in the meantime"),
            Self::Zombie => f.write_str("the process has ended, and its parent has not collected it yet"),
            Self::NoMainThread => f.write_str("the main thread has ended, and other threads run on: the memory of the process cannot be read"),
            Self::KernelThread => f.write_str("a thread of the kernel has no heap"),
            Self::Itself => f.write_str("about-memory cannot attach to itself"),
            Self::ThreadOf(process) => write!(f, "this is a thread of process {process}: attach to {process}"),
            Self::Traced(tracer) => {
                write!(f, "process {tracer} traces it, and only one process may do so: end that debugger first")
            }
            Self::Stopped => f.write_str("a signal has stopped the process: continue it first (kill -CONT PID)"),
            Self::OtherUser(user) => {
                write!(f, "the process belongs to user {user}: attach as that user or as root")
            }
            Self::Forbidden(reason) => f.write_str(reason),
            Self::OtherMachine => {
                f.write_str("the program has 32 bits, or is for another processor than about-memory")
            }
            Self::Static => f.write_str(
                "the program is statically linked, so it has no loader for libdmd.so: wrap its allocator in dmd::Dmd",
            ),
            Self::OtherLibrary(loader) => {
                write!(f, "the program uses the loader {loader}; libdmd.so needs the GNU C library")
            }
            Self::Sanitizer => f.write_str("the program is built with a sanitizer, which has its own malloc"),
            Self::NoKernelFiles => f.write_str(
                "/proc is not mounted in its root, so its loader cannot open libdmd.so: mount it there",
            ),
            Self::Filter => f.write_str(
                "the program filters its own system calls, and the filter may end it: \
                 --with-filter attaches nevertheless",
            ),
            Self::FilterSince => f.write_str(
                "the program has started to filter its system calls since the attachment, and the filter may end it \
                 at the calls of detach: it stays attached",
            ),
            Self::ShadowStack => {
                f.write_str("the processor checks return addresses by a shadow stack: start the program under about-memory run")
            }
            Self::Preloaded => f.write_str("libdmd.so was loaded when the process started: no attachment is needed"),
            Self::Attached => f.write_str("the process is attached to already; about-memory detach ends that"),
            Self::NotAttached => f.write_str("the process is not attached to"),
            Self::NoMoment(reason) => {
                write!(f, "no thread was at a safe moment for 2 s ({reason}): nothing was changed; try again")
            }
            Self::Refused(message) => write!(f, "its loader refuses libdmd.so: {message}"),
            Self::Failed(message) => f.write_str(message),
            Self::Slow(keeper) => write!(
                f,
                "the call in the process has not returned yet: process {keeper} waits for it and then lets the thread \
                 continue; do not kill that process",
            ),
            Self::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for AttachError {}

impl From<io::Error> for AttachError {
    fn from(error: io::Error) -> Self {
        const NO_SUCH_PROCESS: i32 = 3;
        match error.raw_os_error() {
            Some(NO_SUCH_PROCESS) => Self::Ended,
            _ => Self::Io(error),
        }
    }
}
