//! macOS: the sizes of the process, from the Mach kernel, and its page faults.
//!
//! No test runs this code, but it compiles. It follows Apple's `task_info.h` and the manual page `getrusage(2)`.

use core::mem::MaybeUninit;

use mach2::kern_return::KERN_SUCCESS;
use mach2::task::task_info;
use mach2::task_info::{MACH_TASK_BASIC_INFO, MACH_TASK_BASIC_INFO_COUNT, mach_task_basic_info};
use mach2::traps::mach_task_self;

use super::{PageFaults, ProcessSizes};

pub(crate) fn statm() -> Option<ProcessSizes> {
    basic_info().map(|info| ProcessSizes { vsize: info.virtual_size, resident: info.resident_size })
}

pub(crate) fn resident_peak() -> Option<u64> {
    basic_info().map(|info| info.resident_size_max)
}

/// `None` if the kernel returns an error or fewer fields.
#[allow(unsafe_code, reason = "calls the kernel")]
fn basic_info() -> Option<mach_task_basic_info> {
    let mut info = mach_task_basic_info::default();
    let mut count = MACH_TASK_BASIC_INFO_COUNT;
    // SAFETY: `mach_task_self` reads a number that the C library has set before `main`.
    let this = unsafe { mach_task_self() };
    // SAFETY: `info` has room for `count` words, and the kernel writes at most `count` words.
    let result = unsafe { task_info(this, MACH_TASK_BASIC_INFO, (&raw mut info).cast(), &raw mut count) };
    (result == KERN_SUCCESS && count == MACH_TASK_BASIC_INFO_COUNT).then_some(info)
}

#[allow(unsafe_code, reason = "calls the kernel")]
pub(crate) fn page_faults() -> Option<PageFaults> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for the result.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: `getrusage` succeeded and filled `usage`.
    let usage = unsafe { usage.assume_init() };
    Some(PageFaults { hard: usage.ru_majflt.try_into().ok()?, soft: usage.ru_minflt.try_into().ok()? })
}
