//! `stat` and its relatives by the system call, for a C library that lacks them. Until glibc 2.33, programs contain code that
//! calls `__xstat` and others.

use core::ffi::{c_char, c_int, c_void};

/// `stat`.
///
/// # Safety
///
/// As for the C library's function.
pub(crate) unsafe extern "C" fn stat_by_number(path: *const c_char, about: *mut c_void) -> c_int {
    // SAFETY: as for this function.
    unsafe { fstatat_by_number(libc::AT_FDCWD, path, about, 0) }
}

/// `lstat`.
///
/// # Safety
///
/// As for the C library's function.
pub(crate) unsafe extern "C" fn lstat_by_number(path: *const c_char, about: *mut c_void) -> c_int {
    // SAFETY: as for this function.
    unsafe { fstatat_by_number(libc::AT_FDCWD, path, about, libc::AT_SYMLINK_NOFOLLOW) }
}

/// `fstatat`.
///
/// # Safety
///
/// As for the C library's function.
pub(crate) unsafe extern "C" fn fstatat_by_number(
    folder: c_int,
    path: *const c_char,
    about: *mut c_void,
    flags: c_int,
) -> c_int {
    // SAFETY: the system call has the structure of the C library, and the program guarantees that the arguments suit it.
    unsafe { libc::syscall(libc::SYS_newfstatat, folder, path, about, flags) as c_int }
}
