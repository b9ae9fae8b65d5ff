//! Descriptor 2, without the standard library's buffers and locks.

use core::mem::MaybeUninit;

/// The device and inode; `None` if the descriptor is closed.
pub(super) fn identity() -> Option<[u64; 2]> {
    let mut about = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `about` is a place for the answer.
    let failed = unsafe { libc::fstat(2, about.as_mut_ptr()) } != 0;
    // SAFETY: `fstat` succeeded and filled the structure.
    let about = (!failed).then(|| unsafe { about.assume_init() })?;
    #[allow(clippy::unnecessary_cast, reason = "the device has another type on macOS")]
    Some([about.st_dev as u64, about.st_ino])
}

pub(super) fn is_terminal() -> bool {
    // SAFETY: `isatty` accepts any number, even one that is not a descriptor.
    unsafe { libc::isatty(2) == 1 }
}

/// Writes as many bytes as the system accepts.
pub(super) fn write(bytes: &[u8]) {
    // The system call is made by its number, since libc's function is a cancellation point of the thread.
    #[cfg(target_os = "linux")]
    // SAFETY: the slice has this many bytes.
    unsafe {
        libc::syscall(libc::SYS_write, 2, bytes.as_ptr(), bytes.len())
    };
    #[cfg(not(target_os = "linux"))]
    // SAFETY: the slice has this many bytes.
    unsafe {
        libc::write(2, bytes.as_ptr().cast(), bytes.len())
    };
}
