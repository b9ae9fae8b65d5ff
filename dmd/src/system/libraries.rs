//! Libraries that must stay loaded.

use core::ffi::c_void;
use core::mem::MaybeUninit;

/// Keeps the library that contains an address loaded until the end of the process. Calls the loader.
pub(crate) fn pin(address: *const c_void) {
    let Some(module) = module(address) else { return };
    if module.dli_fname.is_null() || is_executable(&module) {
        return;
    }
    let flags = libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_NOW;
    // SAFETY: the string belongs to the loader. It is the name of a library that is already loaded.
    if unsafe { libc::dlopen(module.dli_fname, flags) }.is_null() {
        // The program must not get the loader's error for this call.
        // SAFETY: `dlerror` only removes the error.
        unsafe { libc::dlerror() };
    }
}

/// Whether the module is the executable, as far as the system reports it.
fn is_executable(module: &libc::Dl_info) -> bool {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: `getauxval` reads a vector that the kernel made and that does not change.
        let in_executable = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
        let executable = self::module(core::ptr::with_exposed_provenance(in_executable));
        executable.is_some_and(|that| that.dli_fbase == module.dli_fbase)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = module;
        false
    }
}

fn module(address: *const c_void) -> Option<libc::Dl_info> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `found` is a place for the answer.
    let is_known = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: the fields are pointers, so the value is valid whether it is zeroed or filled by `dladdr`.
    is_known.then(|| unsafe { found.assume_init() })
}
