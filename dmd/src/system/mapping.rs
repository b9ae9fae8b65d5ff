//! Pages of memory from the system.

use core::ptr::null_mut;

use crate::system::errno::keeping_errno;

/// The size of a page of the system, in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn page_size() -> u64 {
    // SAFETY: the call changes nothing.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Maps zeroed pages. Returns null if that fails.
pub(super) fn map_pages(bytes: usize) -> *mut u8 {
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
        if pages == libc::MAP_FAILED { null_mut() } else { pages.cast() }
    })
}

/// Unmaps pages.
///
/// # Safety
///
/// `pages` came from [`map_pages`] with the same size, and they are not used any more.
pub(super) unsafe fn unmap_pages(pages: *mut u8, bytes: usize) {
    keeping_errno(|| {
        // SAFETY: the caller guarantees that this is a whole mapping that no code uses.
        unsafe { libc::munmap(pages.cast(), bytes) };
    });
}
