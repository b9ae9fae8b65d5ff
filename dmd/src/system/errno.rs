//! The error number of the C library. A hook must leave it as it was.

/// Runs `body`, then restores `errno`.
pub(crate) fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the C library always returns a valid pointer to this thread's errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the pointer above is valid as long as the thread lives.
    let before = unsafe { *errno };
    let result = body();
    // SAFETY: the pointer above is valid as long as the thread lives.
    unsafe { *errno = before };
    result
}
