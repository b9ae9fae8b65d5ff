//! Facts that the operating system has about this process. No other module names an operating system.
//!
//! macOS and Windows answer with the sizes of the process. On an unknown system every answer is `None`, and nothing else
//! changes.

mod c_malloc;
#[cfg(feature = "live")]
mod error;
#[cfg(target_os = "linux")]
mod linux;

pub use c_malloc::CUsableSize;
#[cfg(feature = "live")]
pub use error::ListenError;
#[cfg(all(target_os = "linux", feature = "live"))]
pub use linux::{ThreadHost, host_threads};
#[cfg(all(not(target_os = "linux"), feature = "live"))]
pub use unknown_live::{ThreadHost, host_threads};

pub(crate) use c_malloc::{C_USABLE_SIZE, c_usable_size};

#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(not(target_os = "linux"))]
mod unknown;
#[cfg(all(feature = "live", not(target_os = "linux")))]
mod unknown_live;

/// The sizes of the process where it is not Linux that knows them.
#[cfg(not(target_os = "linux"))]
#[cfg_attr(target_os = "macos", path = "platform/macos.rs")]
#[cfg_attr(windows, path = "platform/windows.rs")]
#[cfg_attr(not(any(target_os = "macos", windows)), path = "platform/no_sizes.rs")]
mod sizes;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable_stack;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) use portable_stack::{on_fresh_stack, remaining_stack};

#[cfg(not(target_os = "linux"))]
pub(crate) use sizes::{page_faults, resident_peak, statm};

#[cfg(not(target_os = "linux"))]
pub(crate) use unknown::*;
#[cfg(all(feature = "live", not(target_os = "linux")))]
pub(crate) use unknown_live::*;

/// Starts a thread.
pub(crate) fn spawn(name: &str, run: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    #[cfg(all(target_os = "linux", feature = "live"))]
    if let Some(host) = thread_host() {
        return host.spawn(run);
    }
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// Where a symbol is.
#[allow(dead_code, reason = "not every system has a loader to ask")]
pub(crate) enum FoundSymbol {
    Nowhere,
    /// In the file that this copy of the crate is part of.
    Here,
    Elsewhere(*const core::ffi::c_void),
}

/// The request of a signal.
#[cfg(feature = "live")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system has signals")]
pub(crate) enum SignalTrigger {
    /// To save a report.
    Report,
    /// To minimize memory usage and then to save a report.
    MinimizeAndReport,
}

/// The heap of the C library's malloc, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CHeap {
    /// Live blocks with their headers, and free chunks that the library caches.
    pub(crate) allocated: u64,
    /// Memory that the library has taken from the system.
    pub(crate) committed: u64,
}

/// Sizes of the process, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessSizes {
    pub(crate) vsize: u64,
    pub(crate) resident: u64,
}

/// Page faults since the process started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageFaults {
    pub(crate) hard: u64,
    pub(crate) soft: u64,
}

/// One thread's stack.
#[derive(Clone, Debug)]
pub(crate) struct ThreadStack {
    pub(crate) name: String,
    pub(crate) tid: u32,
    /// Touched bytes; `None` if the stack was not found.
    pub(crate) bytes: Option<u64>,
}

/// One mapping of the process, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub(crate) kind: MappingKind,
    /// The file, or the system's name in brackets.
    pub(crate) name: String,
    pub(crate) resident: u64,
    /// Each page divided by the number of processes that share it.
    pub(crate) proportional: u64,
    pub(crate) swapped: u64,
    /// The part of `resident` that is in huge pages.
    pub(crate) huge: u64,
    /// In reserved huge pages; not in `resident`.
    pub(crate) hugetlb: u64,
}

/// The use of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(dead_code, reason = "not every system lists its mappings")]
pub(crate) enum MappingKind {
    /// Executable, of a file.
    Code,
    /// Of a file, private.
    File,
    /// Shared with other processes, with or without a file.
    Shared,
    /// Private, without a file: the heap that grows behind the program's data.
    Heap,
    /// Private, without a file: other memory, of allocators too.
    Anonymous,
    /// A thread's stack.
    Stack,
    /// The kernel's own.
    Kernel,
}
