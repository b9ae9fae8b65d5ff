//! The error number of the C library; on Windows, of the system. A hook must preserve it.

/// Runs `body`, then restores the error number.
#[cfg(unix)]
pub fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the C library always returns a valid pointer to this thread's errno.
    let errno = unsafe { place() };
    // SAFETY: the pointer above is valid as long as the thread lives.
    let before = unsafe { *errno };
    let result = body();
    // SAFETY: the pointer above is valid as long as the thread lives.
    unsafe { *errno = before };
    result
}

#[cfg(target_os = "macos")]
use libc::__error as place;

#[cfg(all(unix, not(target_os = "macos")))]
use libc::__errno_location as place;

/// Runs `body`, then restores the error number.
#[cfg(windows)]
pub fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    use windows_sys::Win32::Foundation::{GetLastError, SetLastError};

    // SAFETY: the function has no precondition.
    let before = unsafe { GetLastError() };
    let result = body();
    // SAFETY: the function has no precondition.
    unsafe { SetLastError(before) };
    result
}
