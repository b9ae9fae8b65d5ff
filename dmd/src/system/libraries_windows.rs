//! Libraries that must stay loaded.

use core::ffi::c_void;
use core::ptr::null_mut;

use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN, GetModuleHandleExW,
};

/// Keeps the library that contains an address loaded until the end of the process. Calls the loader.
pub(crate) fn pin(address: *const c_void) {
    let mut module = null_mut();
    let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
    // SAFETY: with these flags, the name may be any address, and `module` is a valid place for the answer.
    unsafe { GetModuleHandleExW(flags, address.cast(), &raw mut module) };
}
