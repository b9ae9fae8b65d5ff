//! Returns the sizes of blocks from the C library.

#![allow(unsafe_code, reason = "calls the C library")]

use core::alloc::Layout;
use core::ffi::c_void;

/// A C function like glibc's `malloc_usable_size`: sound to call for every live block of its allocator.
pub type CUsableSize = unsafe extern "C" fn(*const c_void) -> usize;

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
unsafe extern "C" {
    /// As in `libc`, but with a pointer to constant memory: the function only reads.
    fn malloc_usable_size(pointer: *const c_void) -> usize;
}

/// The C function behind [`c_usable_size`]; `None` on other systems.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(crate) const C_USABLE_SIZE: Option<CUsableSize> = Some(malloc_usable_size);

/// `None`: on this system, a walk calls [`c_usable_size`] with the layout.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(crate) const C_USABLE_SIZE: Option<CUsableSize> = None;

/// The usable bytes of a block of the C library.
///
/// # Safety
///
/// `pointer` is a live block of the C library's malloc.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
#[inline]
pub(crate) unsafe fn c_usable_size(pointer: *const u8, _: Layout) -> usize {
    // SAFETY: the caller guarantees a live block of the C library's malloc.
    unsafe { malloc_usable_size(pointer.cast()) }
}

/// The usable bytes of a block of the C library.
///
/// # Safety
///
/// `pointer` is a live block of the C library's malloc.
#[cfg(any(target_os = "macos", target_os = "ios"))]
#[inline]
pub(crate) unsafe fn c_usable_size(pointer: *const u8, _: Layout) -> usize {
    // SAFETY: the caller guarantees a live block of the C library's malloc.
    unsafe { libc::malloc_size(pointer.cast()) }
}

/// The size in `layout`: this C library does not provide the usable size of a block.
///
/// # Safety
///
/// No precondition on this system. On other systems the function reads the pointer.
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_os = "macos",
    target_os = "ios"
)))]
#[inline]
pub(crate) unsafe fn c_usable_size(_: *const u8, layout: Layout) -> usize {
    layout.size()
}
