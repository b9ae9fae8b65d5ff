//! Pages of memory from the system.

use core::ptr::null_mut;

use crate::system::errno::keeping_errno;
use crate::system::own_ranges;

/// The system's calls, past the hooks of `libdmd.so`: a hook must not call a hook.
#[cfg(target_os = "linux")]
mod calls {
    use core::ffi::{c_int, c_void};

    pub(super) unsafe fn mmap(
        at: *mut c_void,
        bytes: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        offset: libc::off_t,
    ) -> *mut c_void {
        // SAFETY: the arguments are those of `mmap`, and the caller keeps its contract.
        let mapped = unsafe { libc::syscall(libc::SYS_mmap, at, bytes, access, flags, file, offset) };
        core::ptr::with_exposed_provenance_mut(mapped as usize)
    }

    pub(super) unsafe fn munmap(at: *mut c_void, bytes: usize) -> c_int {
        // SAFETY: the arguments are those of `munmap`, and the caller keeps its contract.
        unsafe { libc::syscall(libc::SYS_munmap, at, bytes) as c_int }
    }
}
#[cfg(not(target_os = "linux"))]
use libc as calls;

/// The size of a page of the system, in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn page_size() -> u64 {
    // SAFETY: the call changes nothing.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Maps zeroed pages. Returns null if that fails.
pub(super) fn map_pages(bytes: usize) -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    keeping_errno(|| {
        // SAFETY: an anonymous mapping anywhere overwrites nothing.
        let pages = unsafe { calls::mmap(null_mut(), bytes, access, flags, -1, 0) };
        if pages == libc::MAP_FAILED {
            return null_mut();
        }
        own_ranges::add(pages.expose_provenance(), bytes);
        pages.cast()
    })
}

/// Unmaps pages.
///
/// # Safety
///
/// `pages` came from [`map_pages`] with the same size, and they are not used any more.
pub(super) unsafe fn unmap_pages(pages: *mut u8, bytes: usize) {
    own_ranges::remove(pages.addr());
    keeping_errno(|| {
        // SAFETY: the caller guarantees that this is a whole mapping that no code uses.
        unsafe { calls::munmap(pages.cast(), bytes) };
    });
}
