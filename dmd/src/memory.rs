//! Memory of our own, from `mmap` and never from the measured heap.
//!
//! Everything here may be called from inside an allocation: it neither allocates nor panics, keeps `errno`,
//! and answers null when the system has no memory or the bound on our own memory is reached.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::lock::Lock;

/// What all tables together may map: beyond it new blocks are dropped and counted.
const BOUND: usize = 16 << 30;

static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// Bytes mapped by all tables.
pub(crate) fn mapped() -> usize {
    MAPPED.load(Ordering::Relaxed)
}

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

/// Maps zeroed pages, or gives null.
pub(crate) fn map(bytes: usize) -> *mut u8 {
    if MAPPED.fetch_add(bytes, Ordering::Relaxed) + bytes > BOUND {
        MAPPED.fetch_sub(bytes, Ordering::Relaxed);
        return null_mut();
    }
    keeping_errno(|| {
        // SAFETY: an anonymous mapping anywhere overwrites nothing.
        let pages = unsafe {
            libc::mmap(
                null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if pages == libc::MAP_FAILED {
            MAPPED.fetch_sub(bytes, Ordering::Relaxed);
            return null_mut();
        }
        pages.cast()
    })
}

/// Gives pages back.
///
/// # Safety
///
/// `pages` came from [`map`] with the same size, and nobody uses them any more.
pub(crate) unsafe fn unmap(pages: *mut u8, bytes: usize) {
    keeping_errno(|| {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(pages.cast(), bytes) };
    });
    MAPPED.fetch_sub(bytes, Ordering::Relaxed);
}

const CHUNK: usize = 256 << 10;

/// A bump allocator for small things that live as long as the process.
pub(crate) struct Arena {
    lock: Lock,
    next: AtomicPtr<u8>,
    left: AtomicUsize,
}

impl Arena {
    pub(crate) const fn new() -> Self {
        Self { lock: Lock::new(), next: AtomicPtr::new(null_mut()), left: AtomicUsize::new(0) }
    }

    pub(crate) fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Zeroed bytes, aligned to 16, or null.
    pub(crate) fn take(&self, bytes: usize) -> *mut u8 {
        let bytes = bytes.next_multiple_of(16);
        if bytes > CHUNK / 4 {
            return map(bytes.next_multiple_of(4096));
        }
        let _held = self.lock.hold();
        let left = self.left.load(Ordering::Relaxed);
        let start = if left < bytes { map(CHUNK) } else { self.next.load(Ordering::Relaxed) };
        if start.is_null() {
            return null_mut();
        }
        let left = if left < bytes { CHUNK } else { left };
        self.left.store(left - bytes, Ordering::Relaxed);
        self.next.store(start.wrapping_add(bytes), Ordering::Relaxed);
        start
    }
}
