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

/// The facts about a copy that the copy sends to its reader.
pub(crate) struct CopyFacts {
    pub(crate) process: u64,
    pub(crate) bytes: u64,
    pub(crate) milliseconds: u64,
}

pub(crate) fn keep(_path: &[u8], _facts: CopyFacts, _add_stacks: fn(&mut ThreadTable)) -> Result<(), c_int> {
    Err(UNSUPPORTED)
}
