//! The standard error, without the standard library's buffers and locks.

use core::ptr::null_mut;

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::WriteFile;
use windows_sys::Win32::System::Console::{GetConsoleMode, GetStdHandle, STD_ERROR_HANDLE};

fn handle() -> Option<HANDLE> {
    // SAFETY: the function has no precondition.
    let handle = unsafe { GetStdHandle(STD_ERROR_HANDLE) };
    (!handle.is_null() && handle != INVALID_HANDLE_VALUE).then_some(handle)
}

/// The handle; `None` if the process has no standard error.
pub(super) fn identity() -> Option<[u64; 2]> {
    handle().map(|handle| [handle.addr() as u64, 0])
}

pub(super) fn is_terminal() -> bool {
    let mut mode = 0;
    // SAFETY: `mode` is a valid place for the answer, and the system rejects a handle that is not a console.
    handle().is_some_and(|handle| unsafe { GetConsoleMode(handle, &raw mut mode) } != 0)
}

/// Writes as many bytes as the system accepts.
pub(super) fn write(bytes: &[u8]) {
    let Some(handle) = handle() else { return };
    let (length, mut written) = (bytes.len() as u32, 0);
    // SAFETY: the slice has this many bytes, and `written` is a place for the number.
    unsafe { WriteFile(handle, bytes.as_ptr(), length, &raw mut written, null_mut()) };
}
