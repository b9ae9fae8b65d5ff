//! What the operating system tells of this process: the only module that names one.
//!
//! Where the system is not known, every answer is `None` and nothing else changes.

#[cfg(target_os = "linux")]
mod linux;

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
