//! Facts about this process from the operating system. No other module names an operating system.
//!
//! macOS and Windows provide only the sizes of the process. On an unknown system every figure is `None`, and all other
//! modules work as usual.

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

/// The sizes of the process on systems other than Linux.
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

/// The limits of the process's memory. Only Linux has this module's items.
pub mod limits {
    #[cfg(target_os = "linux")]
    pub use super::linux::{BoundKind, MemoryBound, MemoryGroups, tightest_bound_and_left};
}

/// Starts a thread. If a host provides the threads of this crate, the host starts the thread, and ignores the name.
pub(crate) fn spawn(name: &str, run: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    #[cfg(all(target_os = "linux", feature = "live"))]
    if let Some(host) = thread_host() {
        return host.spawn(run);
    }
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// The location of a symbol.
#[allow(dead_code, reason = "not every system has a loader to ask")]
pub(crate) enum FoundSymbol {
    Nowhere,
    /// In the file that contains this copy of the crate.
    Here,
    Elsewhere(*const core::ffi::c_void),
}

/// The action that a signal requests.
#[cfg(feature = "live")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system has signals")]
pub(crate) enum SignalTrigger {
    /// Save a report.
    Report,
    /// Minimize memory usage, then save a report.
    MinimizeAndReport,
}

/// The heap of the C library's malloc, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CHeap {
    /// The bytes of live blocks with their headers, and of free chunks that the library caches.
    pub(crate) allocated: u64,
    /// The bytes that the library has taken from the system.
    pub(crate) committed: u64,
}

/// Amounts of the process's memory group (cgroup), in bytes except for the events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupAmounts {
    pub(crate) current: Option<u64>,
    /// The least limit of the group and of all groups around it.
    pub(crate) max: Option<u64>,
    pub(crate) peak: Option<u64>,
    pub(crate) anon: Option<u64>,
    pub(crate) file: Option<u64>,
    pub(crate) kernel: Option<u64>,
    /// The counts of `high`, `max`, `oom` and `oom_kill`.
    pub(crate) events: [Option<u64>; 4],
}

/// The shares of the last ten seconds in which tasks waited for memory, in hundredths of a percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryStalls {
    /// At least one task waited.
    pub(crate) some: Option<u64>,
    /// All tasks waited.
    pub(crate) full: Option<u64>,
}

/// How much of the tightest limit of its memory the process has used, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryUse {
    pub(crate) limit: u64,
    pub(crate) used: u64,
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

/// The stack of one thread.
#[derive(Clone, Debug)]
pub(crate) struct StackUsage {
    pub(crate) name: String,
    pub(crate) tid: u32,
    /// The touched bytes; `None` if the stack was not found.
    pub(crate) bytes: Option<u64>,
}

/// One mapping of the process. The amounts are in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub(crate) kind: MappingKind,
    /// The path of the file, or the system's name in brackets.
    pub(crate) name: String,
    pub(crate) resident: u64,
    /// The sum over all pages: the page's bytes divided by the number of processes that share the page.
    pub(crate) proportional: u64,
    pub(crate) swapped: u64,
    /// The part of `resident` that is in huge pages.
    pub(crate) huge: u64,
    /// The bytes in reserved huge pages; `resident` does not include them.
    pub(crate) hugetlb: u64,
}

/// The use of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(dead_code, reason = "not every system lists its mappings")]
pub(crate) enum MappingKind {
    /// Executable code from a file.
    Code,
    /// Private memory of a file.
    File,
    /// Memory shared with other processes, with or without a file.
    Shared,
    /// Private memory without a file: the heap that grows behind the program's data.
    Heap,
    /// Other private memory without a file, including memory of allocators.
    Anonymous,
    /// The stack of a thread.
    Stack,
    /// A mapping that the kernel provides, such as `[vdso]`.
    Kernel,
}
