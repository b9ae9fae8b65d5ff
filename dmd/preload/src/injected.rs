//! Whether a running process has loaded this library, and what the library then needs to know of the program.

use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr::null;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

/// Whether the names refer to this library.
static IS_ATTACHED: AtomicBool = AtomicBool::new(false);

/// Stores whether an attachment exists. Returns whether one existed.
pub(crate) fn set_attached(is_attached: bool) -> bool {
    IS_ATTACHED.swap(is_attached, Ordering::SeqCst)
}

/// Whether an attachment exists.
pub(crate) fn is_attached() -> bool {
    IS_ATTACHED.load(Ordering::Relaxed)
}

/// Whether a running process has loaded this library: by the number of a descriptor, as `about-memory attach` does.
pub(crate) fn is_injected() -> bool {
    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
    let known = ANSWER.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known == YES;
    }
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` is valid for a write, and `dladdr` only compares the address.
    unsafe { libc::dladdr((&raw const ANSWER).cast(), info.as_mut_ptr()) };
    // SAFETY: all zeroes are valid, and `dladdr` writes only valid ones.
    let name = unsafe { info.assume_init() }.dli_fname;
    // SAFETY: the pointer is not null, and the loader's name of a library ends in 0.
    let path = || unsafe { CStr::from_ptr(name) }.to_bytes();
    let is_injected = !name.is_null() && path().starts_with(b"/proc/self/fd/");
    ANSWER.store(if is_injected { YES } else { NO }, Ordering::Relaxed);
    is_injected
}

/// The program's variable `environ`; null until an attachment. An executable may have its own copy of the C library's
/// variable, and this library was loaded so that it does not see the copy.
static ENVIRONMENT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The program's variable `environ`; `None` if this library was preloaded: then its own variable is the same.
pub(crate) fn environment() -> Option<*const *const *const c_char> {
    let place = ENVIRONMENT.load(Ordering::Relaxed);
    (!place.is_null()).then(|| place.cast_const().cast())
}

/// The function that the program calls by this name; null if there is no such function.
pub(crate) fn program_function(name: &CStr) -> *mut c_void {
    // SAFETY: a null pointer names the program. The handle is not closed: the program stays loaded anyway.
    let program = unsafe { libc::dlopen(null(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    // SAFETY: the name ends in 0, and the handle is valid or null.
    let found = unsafe { libc::dlsym(program, name.as_ptr()) };
    if found.is_null() {
        // SAFETY: `dlerror` only removes the error, so that the program does not get it.
        unsafe { libc::dlerror() };
    }
    found
}

/// Finds the program's variable `environ`.
pub(crate) fn find_environment() {
    ENVIRONMENT.store(program_function(c"environ"), Ordering::Relaxed);
}
