//! Asking the C library how large a block is.

#![allow(unsafe_code, reason = "asks the C library")]

use core::alloc::Layout;
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
use core::ffi::c_void;

use crate::allocator::CUsableSize;

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
unsafe extern "C" {
    /// As in `libc`, but that only reads.
    fn malloc_usable_size(pointer: *const c_void) -> usize;
}

/// [`c_usable_size`] without the detour, where the C library needs no layout.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(crate) const C_USABLE_SIZE: Option<CUsableSize> = Some(malloc_usable_size);

/// [`c_usable_size`] without the detour, where the C library needs no layout.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(crate) const C_USABLE_SIZE: Option<CUsableSize> = None;

/// Usable bytes of a block, or the size in `layout` where the C library does not tell.
///
/// # Safety
///
/// `pointer` is a live block of the C library's malloc.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
#[inline]
pub(crate) unsafe fn c_usable_size(pointer: *const u8, _: Layout) -> usize {
    // SAFETY: the caller's promise is passed on.
    unsafe { malloc_usable_size(pointer.cast()) }
}

/// Usable bytes of a block, or the size in `layout` where the C library does not tell.
///
/// # Safety
///
/// `pointer` is a live block of the C library's malloc.
#[cfg(any(target_os = "macos", target_os = "ios"))]
#[inline]
pub(crate) unsafe fn c_usable_size(pointer: *const u8, _: Layout) -> usize {
    // SAFETY: the caller's promise is passed on.
    unsafe { libc::malloc_size(pointer.cast()) }
}

/// The size in `layout`: the C library does not tell.
///
/// # Safety
///
/// None here; other systems read the pointer.
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
