//! What the operating system tells of this process: the only module that names one.
//!
//! Where the system is not known, every answer is `None` and nothing else changes.

mod c_malloc;
#[cfg(target_os = "linux")]
mod linux;

pub(crate) use c_malloc::{C_USABLE_SIZE, c_usable_size};

#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(not(target_os = "linux"))]
mod unknown;

#[cfg(not(target_os = "linux"))]
pub(crate) use unknown::*;

/// The heap of the C library's malloc, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CHeap {
    /// Live blocks with their headers, and free chunks that the library keeps cached.
    pub(crate) allocated: u64,
    /// Taken from the system.
    pub(crate) committed: u64,
}

/// Sizes of the process, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statm {
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
    /// Bytes touched; `None` if the stack was not found.
    pub(crate) bytes: Option<u64>,
}
