//! The functions that the program would have called without this library.
//!
//! `dlsym` looks each name up in the libraries that come after this one. This library does not call glibc's functions
//! by their private names: such a call would skip another allocator that is loaded before glibc.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, Ordering};

use engine::__private::Destructor;

use crate::injected::{self, file_of};
use crate::stat_by_number::{fstatat_by_number, lstat_by_number, stat_by_number};

type RealFunction = AtomicPtr<c_void>;

/// An array of C strings that ends in null: the words or the environment of a program.
pub(crate) type CStrings = *const *const c_char;

/// A function that allocates blocks.
#[derive(Clone, Copy)]
pub(crate) enum AllocatingFunction {
    Malloc,
    Calloc,
    Realloc,
    PosixMemalign,
    AlignedAlloc,
    Memalign,
    Valloc,
    Pvalloc,
}

/// Defines [`RealFunctions`], and for each of its functions a Rust function of the same name that calls it. The types
/// are the types of the C library's functions. Functions in a group with "C-unwind" may unwind.
macro_rules! functions {
    ($($abi:literal: $($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*)*) => {
        /// A pointer for each function; null if no library has the function.
        pub(crate) struct RealFunctions {
            state: AtomicU8,
            $($($name: RealFunction,)*)*
            /// A bit for each [`AllocatingFunction`] that is in another file than `malloc_usable_size`. Some libraries
            /// define only a part of the family. Then `malloc_usable_size` cannot return the size of their blocks.
            without_size: AtomicU16,
        }

        pub(crate) static REAL: RealFunctions = RealFunctions {
            state: AtomicU8::new(UNKNOWN),
            $($($name: unknown(),)*)*
            without_size: AtomicU16::new(0),
        };

        impl RealFunctions {
            /// Looks all functions up.
            fn find_all(&self) {
                $($(self.$name.store(behind(name_for_c(concat!(stringify!($name), "\0"))), Ordering::Relaxed);)*)*
            }
        }

        $($(
            /// # Safety
            ///
            /// The contract of the C function. Also, the functions must be [`known`].
            #[inline(always)]
            pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
                let function = REAL.$name.load(Ordering::Relaxed);
                // SAFETY: C fixes the type of the function of this name. The pointer is null only if no library has
                // the function. In this case the program could not have called it without this library either.
                let function: unsafe extern $abi fn($($type),*) -> $result = unsafe { core::mem::transmute(function) };
                // SAFETY: the program guarantees the contract of the C function for the arguments, which are passed on
                // unchanged.
                unsafe { function($($argument),*) }
            }
        )*)*
    };
}

const UNKNOWN: u8 = 0;
const LOOKING: u8 = 1;
const KNOWN: u8 = 2;

const fn unknown() -> RealFunction {
    AtomicPtr::new(core::ptr::null_mut())
}

/// Whether the functions are known. The first call looks them up. `false` means that this is a call during that
/// look-up.
#[inline(always)]
pub(crate) fn known() -> bool {
    REAL.state.load(Ordering::Acquire) == KNOWN || REAL.look_up()
}

/// Whether the functions are known. Never looks them up.
#[inline(always)]
pub(crate) fn are_known() -> bool {
    REAL.state.load(Ordering::Acquire) == KNOWN
}

functions! {
    "C":
    malloc(bytes: usize) -> *mut c_void;
    calloc(count: usize, bytes: usize) -> *mut c_void;
    realloc(block: *mut c_void, bytes: usize) -> *mut c_void;
    free(block: *mut c_void) -> ();
    posix_memalign(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int;
    aligned_alloc(align: usize, bytes: usize) -> *mut c_void;
    memalign(align: usize, bytes: usize) -> *mut c_void;
    valloc(bytes: usize) -> *mut c_void;
    pvalloc(bytes: usize) -> *mut c_void;
    malloc_usable_size(block: *mut c_void) -> usize;
    mmap(
        at: *mut c_void,
        bytes: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        offset: libc::off_t
    ) -> *mut c_void;
    mmap64(
        at: *mut c_void,
        bytes: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        offset: libc::off64_t
    ) -> *mut c_void;
    munmap(at: *mut c_void, bytes: usize) -> c_int;
    mremap(at: *mut c_void, bytes: usize, new_bytes: usize, flags: c_int, new_at: *mut c_void) -> *mut c_void;
    sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
    signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
    execve(path: *const c_char, words: CStrings, environment: CStrings) -> c_int;
    execvpe(name: *const c_char, words: CStrings, environment: CStrings) -> c_int;
    posix_spawn(
        process: *mut libc::pid_t,
        path: *const c_char,
        actions: *const c_void,
        attributes: *const c_void,
        words: CStrings,
        environment: CStrings
    ) -> c_int;
    posix_spawnp(
        process: *mut libc::pid_t,
        name: *const c_char,
        actions: *const c_void,
        attributes: *const c_void,
        words: CStrings,
        environment: CStrings
    ) -> c_int;
    unshare(flags: c_int) -> c_int;
    setns(namespace: c_int, kind: c_int) -> c_int;
    setuid(user: libc::uid_t) -> c_int;
    setgid(group: libc::gid_t) -> c_int;
    seteuid(user: libc::uid_t) -> c_int;
    setegid(group: libc::gid_t) -> c_int;
    setreuid(real: libc::uid_t, effective: libc::uid_t) -> c_int;
    setregid(real: libc::gid_t, effective: libc::gid_t) -> c_int;
    setresuid(real: libc::uid_t, effective: libc::uid_t, saved: libc::uid_t) -> c_int;
    setresgid(real: libc::gid_t, effective: libc::gid_t, saved: libc::gid_t) -> c_int;
    setgroups(count: usize, groups: *const libc::gid_t) -> c_int;
    initgroups(user: *const c_char, group: libc::gid_t) -> c_int;
    capset(header: *mut c_void, data: *const c_void) -> c_int;
    __cxa_thread_atexit_impl(destructor: Destructor, object: *mut c_void, library: *mut c_void) -> c_int;
    stat(path: *const c_char, about: *mut c_void) -> c_int;
    stat64(path: *const c_char, about: *mut c_void) -> c_int;
    lstat(path: *const c_char, about: *mut c_void) -> c_int;
    lstat64(path: *const c_char, about: *mut c_void) -> c_int;
    fstatat(folder: c_int, path: *const c_char, about: *mut c_void, flags: c_int) -> c_int;
    fstatat64(folder: c_int, path: *const c_char, about: *mut c_void, flags: c_int) -> c_int;
    statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, about: *mut c_void) -> c_int;
    __xstat(version: c_int, path: *const c_char, about: *mut c_void) -> c_int;
    __xstat64(version: c_int, path: *const c_char, about: *mut c_void) -> c_int;
    __lxstat(version: c_int, path: *const c_char, about: *mut c_void) -> c_int;
    __lxstat64(version: c_int, path: *const c_char, about: *mut c_void) -> c_int;
    __fxstatat(version: c_int, folder: c_int, path: *const c_char, about: *mut c_void, flags: c_int) -> c_int;
    __fxstatat64(version: c_int, folder: c_int, path: *const c_char, about: *mut c_void, flags: c_int) -> c_int;

    // If a thread is cancelled in one of these functions, it unwinds its stack.
    "C-unwind":
    waitpid(process: libc::pid_t, status: *mut c_int, options: c_int) -> libc::pid_t;
    wait3(status: *mut c_int, options: c_int, usage: *mut libc::rusage) -> libc::pid_t;
    wait4(process: libc::pid_t, status: *mut c_int, options: c_int, usage: *mut libc::rusage) -> libc::pid_t;
    waitid(kind: libc::idtype_t, id: libc::id_t, info: *mut libc::siginfo_t, options: c_int) -> c_int;
}

impl RealFunctions {
    /// Sets functions that this library exports but an old C library lacks: this library's own code calls them.
    fn fill_in(&self) {
        let missing = core::ptr::null_mut();
        for (real, by_number) in [
            (&self.stat, stat_by_number as *mut c_void),
            (&self.stat64, stat_by_number as *mut c_void),
            (&self.lstat, lstat_by_number as *mut c_void),
            (&self.lstat64, lstat_by_number as *mut c_void),
            (&self.fstatat, fstatat_by_number as *mut c_void),
            (&self.fstatat64, fstatat_by_number as *mut c_void),
        ] {
            _ = real.compare_exchange(missing, by_number, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    #[cold]
    fn look_up(&self) -> bool {
        let start = self.state.compare_exchange(UNKNOWN, LOOKING, Ordering::AcqRel, Ordering::Acquire);
        if start.is_err() {
            return self.state.load(Ordering::Acquire) == KNOWN;
        }
        self.find_all();
        self.fill_in();
        let sizes_from = file_of(self.malloc_usable_size.load(Ordering::Relaxed));
        let mut without_size = 0;
        let givers = [
            (&self.malloc, AllocatingFunction::Malloc),
            (&self.calloc, AllocatingFunction::Calloc),
            (&self.realloc, AllocatingFunction::Realloc),
            (&self.posix_memalign, AllocatingFunction::PosixMemalign),
            (&self.aligned_alloc, AllocatingFunction::AlignedAlloc),
            (&self.memalign, AllocatingFunction::Memalign),
            (&self.valloc, AllocatingFunction::Valloc),
            (&self.pvalloc, AllocatingFunction::Pvalloc),
        ];
        for (function, giver) in givers {
            let is_apart = file_of(function.load(Ordering::Relaxed)) != sizes_from;
            without_size |= u16::from(is_apart) << giver as u16;
        }
        self.without_size.store(without_size, Ordering::Relaxed);
        self.state.store(KNOWN, Ordering::Release);
        true
    }
}

/// The function that returns the usable bytes of a live block that `giver` made; `None` if no library has such a
/// function. The functions must be [`known`].
#[inline(always)]
pub(crate) fn size_of(giver: AllocatingFunction) -> Option<unsafe extern "C" fn(*mut c_void) -> usize> {
    if REAL.without_size.load(Ordering::Relaxed) >> giver as u16 & 1 != 0 {
        return None;
    }
    let function = REAL.malloc_usable_size.load(Ordering::Relaxed);
    // SAFETY: C fixes the type of the function of this name, and a null pointer becomes `None`.
    unsafe { core::mem::transmute(function) }
}

const fn name_for_c(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("the macro adds the 0"),
    }
}

/// The oldest version of the C library's functions. Some functions have only this version, for old programs, and
/// `dlsym` does not find them.
#[cfg(target_arch = "x86_64")]
const OLDEST: &CStr = c"GLIBC_2.2.5";
#[cfg(target_arch = "aarch64")]
const OLDEST: &CStr = c"GLIBC_2.17";

/// The C library's `dlsym`. This library has a function of that name, too.
pub(crate) fn dlsym_address() -> *mut c_void {
    static FOUND: RealFunction = unknown();
    let found = FOUND.load(Ordering::Relaxed);
    if !found.is_null() {
        return found;
    }
    let of = |version: &CStr| {
        // SAFETY: both texts end in 0.
        unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) }
    };
    let newer = of(c"GLIBC_2.34");
    let found = if newer.is_null() { of(OLDEST) } else { newer };
    FOUND.store(found, Ordering::Relaxed);
    found
}

/// The function that the program would call without this library; null if no library has a function of this name. If
/// this library was preloaded, searches the libraries after this one. If it was loaded into a running process, the
/// libraries after it are not those that the program uses. So this function asks the loader for the program's own
/// function.
fn behind(name: &CStr) -> *mut c_void {
    if injected::is_injected() {
        return injected::program_function(name);
    }
    // SAFETY: a `CStr` ends in 0.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !found.is_null() {
        return found;
    }
    // SAFETY: both texts end in 0.
    unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), OLDEST.as_ptr()) }
}

/// The address of the program's `malloc`; null before it is known.
pub(crate) fn malloc_address() -> *mut c_void {
    REAL.malloc.load(Ordering::Relaxed)
}
