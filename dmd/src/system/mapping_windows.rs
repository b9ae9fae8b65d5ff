//! Pages of memory from the system.

use core::ptr::null;

use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_READWRITE, VirtualAlloc, VirtualFree,
};

use crate::system::errno::keeping_errno;

/// Maps zeroed pages. Returns null if that fails.
pub(super) fn map_pages(bytes: usize) -> *mut u8 {
    // SAFETY: fresh pages at any address overwrite no memory.
    keeping_errno(|| unsafe { VirtualAlloc(null(), bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) }).cast()
}

/// Unmaps pages.
///
/// # Safety
///
/// `pages` came from [`map_pages`], and they are not used any more.
pub(super) unsafe fn unmap_pages(pages: *mut u8, _bytes: usize) {
    keeping_errno(|| {
        // SAFETY: the caller guarantees that this is the start of pages that no code uses. The system knows their
        // size.
        unsafe { VirtualFree(pages.cast(), 0, MEM_RELEASE) };
    });
}
