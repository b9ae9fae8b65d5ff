//! Whether this library was loaded into a running process, and the program's functions and variables that it then uses.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

/// Whether an attachment exists: the program's references then lead to this library.
static IS_ATTACHED: AtomicBool = AtomicBool::new(false);

/// Stores whether an attachment exists. Returns whether one existed.
pub(crate) fn set_attached(is_attached: bool) -> bool {
    IS_ATTACHED.swap(is_attached, Ordering::SeqCst)
}

/// Whether an attachment exists.
pub(crate) fn is_attached() -> bool {
    IS_ATTACHED.load(Ordering::Relaxed)
}

/// Whether `about-memory attach` has loaded this library into a running process. The library then has the path
/// `/proc/self/fd/N`.
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

/// The address of the program's variable `environ`; null until an attachment. An executable may have its own copy of
/// the C library's variable. `about-memory attach` loads this library in a way that hides the copy from the library.
static ENVIRONMENT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The address of the program's variable `environ`; `None` if this library was preloaded: then the library's own
/// `environ` is the same variable.
pub(crate) fn environment() -> Option<*const *const *const c_char> {
    let place = ENVIRONMENT.load(Ordering::Relaxed);
    (!place.is_null()).then(|| place.cast_const().cast())
}

/// Returns the function or variable that the program uses under this name; null if no object defines the name.
pub(crate) fn program_function(name: &CStr) -> *mut c_void {
    let found = program_address(name);
    if is_own_stub(found) { defined_function(name) } else { found }
}

/// Whether an address of [`program_address`] is only a stub. If code of an executable at a fixed address contains the
/// address of a library's function, this address is the address of a stub in the executable, which jumps to the
/// function. In all files, the loader then uses the stub's address as the address of the function, except for calls.
fn is_own_stub(address: *const c_void) -> bool {
    const SYMBOL: c_int = 1;
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let mut symbol: *mut c_void = core::ptr::null_mut();
    // SAFETY: both places are valid for a write, and `dladdr1` only compares the address.
    let found = unsafe { libc::dladdr1(address, info.as_mut_ptr(), &raw mut symbol, SYMBOL) };
    let symbol = symbol.cast::<libc::Elf64_Sym>().cast_const();
    // SAFETY: the loader returns null, or an entry of the table of a file that stays loaded.
    found != 0 && unsafe { symbol.as_ref() }.is_some_and(|symbol| symbol.st_shndx == 0)
}

/// The loader's record of a file.
#[repr(C)]
struct LoadedFile {
    _distance: usize,
    path: *const c_char,
    dynamic: *const c_void,
    next: *mut LoadedFile,
}

/// The function of the first loaded file that defines it; null if no file does.
fn defined_function(name: &CStr) -> *mut c_void {
    // SAFETY: as in `program_address`.
    let program = unsafe { libc::dlopen(null(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    let mut file: *mut LoadedFile = core::ptr::null_mut();
    // SAFETY: the request stores the program's record there.
    unsafe { libc::dlinfo(program, libc::RTLD_DI_LINKMAP, (&raw mut file).cast()) };
    while !file.is_null() {
        // SAFETY: the records form a list that ends in null. Files from the program's start stay loaded, and the C
        // library is one of them.
        let LoadedFile { path, dynamic, next, .. } = unsafe { file.read() };
        // SAFETY: the path ends in 0. The file is loaded already.
        let handle = unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if !handle.is_null() {
            // SAFETY: the name ends in 0, and the handle is valid.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            // SAFETY: the handle is not used again. The file stays loaded, since others have loaded it.
            unsafe { libc::dlclose(handle) };
            // `dlsym` also searches the files that this file needs, so check that this file contains the address.
            if !found.is_null() && file_of(found) == file_of(dynamic) && !is_own_stub(found) {
                return found;
            }
        }
        file = next;
    }
    // SAFETY: `dlerror` only removes the error, so that the program does not get it.
    unsafe { libc::dlerror() };
    core::ptr::null_mut()
}

/// Returns the address that the program uses for this name; null if no object defines the name. The address may be a
/// stub's.
pub(crate) fn program_address(name: &CStr) -> *mut c_void {
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

/// The start address of the file that contains an address; null if no file contains it.
pub(crate) fn file_of(address: *const c_void) -> *mut c_void {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` is valid for a write. `dladdr` compares the address and does not read from it.
    unsafe { libc::dladdr(address, info.as_mut_ptr()) };
    // SAFETY: all zeroes is a valid `Dl_info`, and `dladdr` writes only valid ones.
    unsafe { info.assume_init() }.dli_fbase
}
