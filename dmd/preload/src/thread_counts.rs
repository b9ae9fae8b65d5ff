//! Calls by which a program counts its threads: the folder `/proc/self/task` has two links plus one for each thread.
//! The engine's threads end before such a call, and start again after it. Sandboxes, for example Chromium's, refuse to
//! start in a process with a second thread.
//!
//! Programs that read the folder, or the count in `/proc/self/stat` or `/proc/self/status`, find the engine threads.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use engine::__private::without_engine_threads;

use crate::real;

macro_rules! asks_about_file {
    ($($name:ident($($before:ident: $type:ty,)* | $path:ident | $($after:ident: $type_after:ty),*);)*) => {$(
        /// Behaves as the C library's function of this name.
        ///
        /// # Safety
        ///
        /// The contract of the C library's function.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($before: $type,)* $path: *const c_char, $($after: $type_after),*) -> c_int {
            real::known();
            // SAFETY: the program guarantees that the arguments suit this function; they are passed on unchanged.
            let ask = || unsafe { real::$name($($before,)* $path, $($after),*) };
            // SAFETY: the closure passes the path to the system.
            unsafe { counted($path, ask) }
        }
    )*};
}

asks_about_file! {
    stat(|path| about: *mut c_void);
    stat64(|path| about: *mut c_void);
    lstat(|path| about: *mut c_void);
    lstat64(|path| about: *mut c_void);
    fstatat(folder: c_int, |path| about: *mut c_void, flags: c_int);
    fstatat64(folder: c_int, |path| about: *mut c_void, flags: c_int);
    statx(folder: c_int, |path| flags: c_int, mask: c_uint, about: *mut c_void);
    __xstat(version: c_int, |path| about: *mut c_void);
    __xstat64(version: c_int, |path| about: *mut c_void);
    __lxstat(version: c_int, |path| about: *mut c_void);
    __lxstat64(version: c_int, |path| about: *mut c_void);
    __fxstatat(version: c_int, folder: c_int, |path| about: *mut c_void, flags: c_int);
    __fxstatat64(version: c_int, folder: c_int, |path| about: *mut c_void, flags: c_int);
}

/// Calls `ask`. If the path is a folder of threads, calls `ask` again without engine threads.
///
/// # Safety
///
/// `ask` succeeds only if the system could read the path.
unsafe fn counted(path: *const c_char, ask: impl Fn() -> c_int) -> c_int {
    let result = ask();
    if result != 0 || path.is_null() {
        return result;
    }
    // SAFETY: the system has read the path up to the 0 at its end.
    let path = unsafe { CStr::from_ptr(path) };
    if is_of_threads(path.to_bytes()) { without_engine_threads(ask) } else { result }
}

/// Whether the path may be `/proc/PID/task`, or a relative path to it.
fn is_of_threads(path: &[u8]) -> bool {
    let mut parts = path.rsplit(|byte| *byte == b'/').skip_while(|part| part.is_empty());
    parts.next() == Some(b"task")
        && parts.next().is_none_or(|process| process == b"self" || process.iter().all(u8::is_ascii_digit))
}
