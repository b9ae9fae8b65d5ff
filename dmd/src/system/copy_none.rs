//! Processes cannot be copied on this system.

use core::ffi::c_int;

use memory_reporter::engine_abi::CopyHandle;

use crate::system::threads::ThreadTable;

/// The error for an unsupported request. The system has no error with this number.
const UNSUPPORTED: c_int = -1;

pub(crate) fn make(_add_stacks: fn(&mut ThreadTable)) -> Result<CopyHandle, c_int> {
    Err(UNSUPPORTED)
}

pub(crate) fn end(_copy: CopyHandle) {}
