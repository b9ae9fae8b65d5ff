//! Windows: the sizes of the process, from its memory counters.
//!
//! No test runs this code, but it compiles. It follows Microsoft's pages about `GetProcessMemoryInfo` and
//! `GlobalMemoryStatusEx`.

use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::{PageFaults, ProcessSizes};

/// The address space in use: the part of the process's address space that is not free.
pub(crate) fn statm() -> Option<ProcessSizes> {
    let status = memory_status()?;
    let vsize = status.ullTotalVirtual.checked_sub(status.ullAvailVirtual)?;
    Some(ProcessSizes { vsize, resident: counters()?.WorkingSetSize as u64 })
}

pub(crate) fn resident_peak() -> Option<u64> {
    counters().map(|counters| counters.PeakWorkingSetSize as u64)
}

/// `None`: Windows counts all faults together, so neither kind is known.
pub(crate) fn page_faults() -> Option<PageFaults> {
    None
}

#[allow(unsafe_code, reason = "calls the system")]
fn counters() -> Option<PROCESS_MEMORY_COUNTERS> {
    const BYTES: u32 = size_of::<PROCESS_MEMORY_COUNTERS>() as u32;
    let mut counters = PROCESS_MEMORY_COUNTERS { cb: BYTES, ..Default::default() };
    // SAFETY: `GetCurrentProcess` has no precondition.
    let this = unsafe { GetCurrentProcess() };
    // SAFETY: the handle refers to this process, and `counters` has the stated size.
    let answered = unsafe { K32GetProcessMemoryInfo(this, &raw mut counters, BYTES) };
    (answered != 0).then_some(counters)
}

#[allow(unsafe_code, reason = "calls the system")]
fn memory_status() -> Option<MEMORYSTATUSEX> {
    let mut status = MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..Default::default() };
    // SAFETY: `status` has the size that it states.
    let answered = unsafe { GlobalMemoryStatusEx(&raw mut status) };
    (answered != 0).then_some(status)
}
