//! Lets threads sleep in the kernel until a word changes.

use core::ptr::null;
use core::sync::atomic::AtomicU32;
use core::time::Duration;

use crate::system::errno::keeping_errno;

/// Sleeps while the word has this value, until [`wake_one`] is called or the time is over. May return earlier.
pub(crate) fn wait(word: &AtomicU32, value: u32, longest: Option<Duration>) {
    let time = longest.map(|longest| libc::timespec {
        tv_sec: longest.as_secs() as _,
        tv_nsec: longest.subsec_nanos().into(),
    });
    keeping_errno(|| {
        // SAFETY: the kernel reads the word, which is borrowed, and the time, which is null or a local variable.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                value,
                time.as_ref().map_or(null(), core::ptr::from_ref),
            )
        };
    });
}

/// Wakes one thread that sleeps, if there is one. The word must be in a static or in a mapping that is never unmapped.
pub(crate) fn wake_one(word: &AtomicU32) {
    keeping_errno(|| {
        // SAFETY: the word is borrowed, and the kernel uses its address only as an identifier.
        unsafe {
            libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1)
        };
    });
}
