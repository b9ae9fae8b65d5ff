//! `stat` and its relatives by system call, for a C library that lacks these functions. With glibc before 2.33,
//! programs contain code that calls `__xstat` and similar functions.

use core::ffi::{c_char, c_int, c_void};

/// Does the same as `stat`.
///
/// # Safety
///
/// The contract of the C library's function.
pub(crate) unsafe extern "C" fn stat_by_number(path: *const c_char, about: *mut c_void) -> c_int {
    // SAFETY: the caller keeps the same contract.
    unsafe { fstatat_by_number(libc::AT_FDCWD, path, about, 0) }
}

/// Does the same as `lstat`.
///
/// # Safety
///
/// The contract of the C library's function.
pub(crate) unsafe extern "C" fn lstat_by_number(path: *const c_char, about: *mut c_void) -> c_int {
    // SAFETY: the caller keeps the same contract.
    unsafe { fstatat_by_number(libc::AT_FDCWD, path, about, libc::AT_SYMLINK_NOFOLLOW) }
}

/// Does the same as `fstatat`.
///
/// # Safety
///
/// The contract of the C library's function.
pub(crate) unsafe extern "C" fn fstatat_by_number(
    folder: c_int,
    path: *const c_char,
    about: *mut c_void,
    flags: c_int,
) -> c_int {
    // SAFETY: the system call uses the same structure as the C library, and the program guarantees that the arguments
    // suit it.
    unsafe { libc::syscall(libc::SYS_newfstatat, folder, path, about, flags) as c_int }
}
