//! The error number of the C library, which a hook must leave as it was.

/// Runs `body` and gives `errno` its value back.
pub(crate) fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: always a valid pointer to this thread's errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let result = body();
    // SAFETY: as above.
    unsafe { *errno = before };
    result
}
