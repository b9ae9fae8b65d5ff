//! Calls that start programs. A program with another C library, for another machine or with a sanitizer does not start
//! with this library in `$LD_PRELOAD`. Such a program gets an environment without the library, and is not recorded.
//!
//! The child of a `vfork` may call these functions, and it shares its parent's memory. So these functions do not
//! allocate, do not take locks, and unmap each file that they map.
//! Calls within the C library (`system`, `popen`, `execl`) do not use these functions.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null;

use engine::__private::{is_confined, keeping_errno, program_is_replaced};

use crate::executable::Executable;
use crate::injected;
use crate::real::{self, CStrings};

unsafe extern "C" {
    static environ: CStrings;
}

const PRELOAD: &[u8] = b"LD_PRELOAD=";
const THIS_LIBRARY: &[u8] = b"libdmd.so";
/// The maximum number of scripts in a chain in which the interpreter of a script is again a script, as in Linux.
const MOST_SCRIPTS: usize = 5;
const LONGEST_PATH: usize = 4096;
/// The maximum number of variables. An environment with more variables, or with a longer list of libraries, stays
/// unchanged.
const MOST_VARIABLES: usize = 1024;
const LONGEST_LIST: usize = 4096;

macro_rules! starts_program {
    ($($name:ident($($before:ident: $type:ty,)* | $program:ident, $is_searched:literal | $($after:ident: $type_after:ty),*) $when:expr;)*) => {$(
        /// Behaves as the C library's function of this name.
        ///
        /// # Safety
        ///
        /// The contract of the C function.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            $($before: $type,)*
            $program: *const c_char,
            $($after: $type_after,)*
            words: CStrings,
            environment: CStrings,
        ) -> c_int {
            real::known();
            let start = |environment| {
                $when;
                // SAFETY: the program passes these arguments, and `environment` is its environment or a part of it.
                unsafe { real::$name($($before,)* $program, $($after,)* words, environment) }
            };
            // SAFETY: the program passes a name and an environment, as the C function requires.
            unsafe { with_environment($program, $is_searched, environment, start) }
        }
    )*};
}

starts_program! {
    execve(|path, false|) if is_executable(path) { program_is_replaced() };
    execvpe(|name, true|) program_is_replaced();
    posix_spawn(process: *mut libc::pid_t, |path, false| actions: *const c_void, attributes: *const c_void) {};
    posix_spawnp(process: *mut libc::pid_t, |name, true| actions: *const c_void, attributes: *const c_void) {};
}

macro_rules! replaces_program {
    ($($name:ident, $with_environment:ident;)*) => {$(
        /// Behaves as the C library's function of this name.
        ///
        /// # Safety
        ///
        /// The contract of the C function.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(program: *const c_char, words: CStrings) -> c_int {
            let environment = injected::environment().unwrap_or(&raw const environ);
            // SAFETY: no thread changes the variable during the call, since the C function also requires that.
            let environment = unsafe { *environment };
            // SAFETY: the program passes the arguments, and `environment` is its environment.
            unsafe { $with_environment(program, words, environment) }
        }
    )*};
}

replaces_program! {
    execv, execve;
    execvp, execvpe;
}

/// Whether the rights of the file allow this process to start it. A program may try several paths; the engine writes
/// its last dump only before a start that these rights allow.
fn is_executable(path: *const c_char) -> bool {
    // SAFETY: the system checks the pointer.
    !path.is_null() && unsafe { libc::access(path, libc::X_OK) } == 0
}

/// Calls `start` with the environment if the program can start with this library, otherwise with an environment without
/// the library. Under a filter of system calls, the program's file is not read, and the environment stays unchanged.
///
/// # Safety
///
/// The name is null or ends in 0. The environment is null or has the format of C.
unsafe fn with_environment(
    name: *const c_char,
    is_searched: bool,
    environment: CStrings,
    start: impl FnOnce(CStrings) -> c_int,
) -> c_int {
    // SAFETY: the environment is null or has the format of C.
    let preload = unsafe { variables(environment) }.position(is_for_us);
    let Some(preload) = preload.filter(|_| !name.is_null()) else { return start(environment) };
    // SAFETY: the pointer is not null, so the name ends in 0.
    let name = unsafe { CStr::from_ptr(name) };
    if is_confined() || !keeping_errno(|| is_other(name, is_searched)) {
        return start(environment);
    }
    start_without(environment, preload, start)
}

/// Whether a variable names this library for the loader.
fn is_for_us(variable: &CStr) -> bool {
    variable.to_bytes().strip_prefix(PRELOAD).is_some_and(|list| libraries(list).any(is_this_library))
}

fn libraries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b' ' | b':')).filter(|name| !name.is_empty())
}

fn is_this_library(name: &[u8]) -> bool {
    name.ends_with(THIS_LIBRARY)
}

/// # Safety
///
/// The environment is null or has the format of C, for as long as the result is used.
unsafe fn variables<'e>(environment: CStrings) -> impl Iterator<Item = &'e CStr> {
    let mut next = environment;
    core::iter::from_fn(move || {
        if next.is_null() {
            return None;
        }
        // SAFETY: null follows the last string, and this code stops at the null.
        let variable = unsafe { *next };
        if variable.is_null() {
            return None;
        }
        next = next.wrapping_add(1);
        // SAFETY: the variable is a string of the environment, which ends in 0.
        Some(unsafe { CStr::from_ptr(variable) })
    })
}

/// Calls `start` with an environment in which the variable at this index does not name this library.
#[inline(never)]
fn start_without(environment: CStrings, preload: usize, start: impl FnOnce(CStrings) -> c_int) -> c_int {
    let mut pointers = [null::<c_char>(); MOST_VARIABLES + 1];
    let mut list = [0_u8; LONGEST_LIST];
    // SAFETY: the caller has found a variable in this environment, so the environment has the format of C.
    let all = || unsafe { variables(environment) };
    if all().count() > MOST_VARIABLES {
        return start(environment);
    }
    let mut length = 0;
    let mut add = |bytes: &[u8]| {
        let place = list.get_mut(length..length + bytes.len())?;
        place.copy_from_slice(bytes);
        length += bytes.len();
        Some(())
    };
    let value = all().nth(preload).and_then(|variable| variable.to_bytes().strip_prefix(PRELOAD));
    let others = || libraries(value.unwrap_or_default()).filter(|name| !is_this_library(name));
    let added = others().enumerate().try_for_each(|(at, name)| {
        add(if at == 0 { PRELOAD } else { b" " })?;
        add(name)
    });
    if added.and_then(|()| add(b"\0")).is_none() {
        return start(environment);
    }
    let has_others = others().next().is_some();
    let kept = all().enumerate().filter_map(|(at, variable)| match at == preload {
        true => has_others.then_some(list.as_ptr().cast()),
        false => Some(variable.as_ptr()),
    });
    for (place, variable) in pointers.iter_mut().zip(kept) {
        *place = variable;
    }
    start(pointers.as_ptr())
}

/// Whether a program cannot start with this library in `$LD_PRELOAD`.
fn is_other(name: &CStr, is_searched: bool) -> bool {
    let mut path = [0; LONGEST_PATH];
    let mut place = match is_searched && !name.to_bytes().contains(&b'/') {
        true => find(name.to_bytes(), &mut path),
        false => copy(&[name.to_bytes()], &mut path),
    };
    for _ in 0..MOST_SCRIPTS {
        let Some(length) = place else { return false };
        let Some(file) = path
            .get(..=length)
            .and_then(|path| CStr::from_bytes_with_nul(path).ok())
            .and_then(MappedProgram::open)
        else {
            return false;
        };
        place = match Executable::recognize(file.bytes()) {
            Executable::Preloadable => return false,
            Executable::Other => return true,
            Executable::Script(interpreter) => copy(&[interpreter], &mut path),
        };
    }
    false
}

/// Writes a path, with a 0 at its end, and returns its length; `None` if it is too long.
fn copy(parts: &[&[u8]], path: &mut [u8; LONGEST_PATH]) -> Option<usize> {
    let mut length = 0;
    for part in parts {
        path.get_mut(length..length + part.len())?.copy_from_slice(part);
        length += part.len();
    }
    *path.get_mut(length)? = 0;
    Some(length)
}

/// Searches for a program in `$PATH`, like the C library. Returns the length of its path.
fn find(name: &[u8], path: &mut [u8; LONGEST_PATH]) -> Option<usize> {
    // SAFETY: the name ends in 0. No thread changes the environment during the call, since the C function that the
    // program called also requires that.
    let folders = unsafe { libc::getenv(c"PATH".as_ptr()) };
    let folders = match folders.is_null() {
        true => c"/bin:/usr/bin",
        // SAFETY: the pointer is not null, so it is a string that ends in 0.
        false => unsafe { CStr::from_ptr(folders) },
    };
    for folder in folders.to_bytes().split(|byte| *byte == b':') {
        let folder = if folder.is_empty() { b"." } else { folder };
        let length = copy(&[folder, b"/", name], path);
        // SAFETY: the path ends in 0.
        if length.is_some() && unsafe { libc::access(path.as_ptr().cast(), libc::X_OK) } == 0 {
            return length;
        }
    }
    None
}

/// A file that is mapped into memory until dropped.
struct MappedProgram {
    start: *mut c_void,
    length: usize,
}

impl MappedProgram {
    /// Maps a file. Returns `None` if the path is not a file with contents that this process may read.
    fn open(path: &CStr) -> Option<Self> {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        // SAFETY: the path ends in 0.
        let descriptor = unsafe { libc::open(path.as_ptr(), flags) };
        if descriptor < 0 {
            return None;
        }
        let mapped = Self::map(descriptor);
        // SAFETY: the descriptor was opened above, and no other code uses it.
        unsafe { libc::close(descriptor) };
        mapped
    }

    fn map(descriptor: c_int) -> Option<Self> {
        let mut about = MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: the descriptor is open, and `about` is a valid place for the answer.
        if unsafe { libc::fstat(descriptor, about.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: `fstat` has filled the structure.
        let about = unsafe { about.assume_init() };
        let length = usize::try_from(about.st_size).ok().filter(|length| *length > 0)?;
        if about.st_mode & libc::S_IFMT != libc::S_IFREG {
            return None;
        }
        // SAFETY: the kernel chooses the place.
        let start = unsafe {
            libc::mmap(core::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, descriptor, 0)
        };
        (start != libc::MAP_FAILED).then_some(Self { start, length })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has this length and exists until the drop. A program that is about to start keeps its
        // length.
        unsafe { core::slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

impl Drop for MappedProgram {
    fn drop(&mut self) {
        // SAFETY: `map` made the mapping with this length.
        unsafe { libc::munmap(self.start, self.length) };
    }
}
