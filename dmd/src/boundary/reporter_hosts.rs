//! The programs whose reporters the engine can run: those that link `memory-reporter` and have connected.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use core::time::Duration;

use memory_reporter::engine_abi::RunReporters;

/// More than one copy of `memory-reporter` is rare: each library that links its own has one.
const MOST: usize = 8;

/// The function of each program that runs its reporters; null for no program.
static PROGRAMS: [AtomicPtr<c_void>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];

/// Keeps the library that contains an address loaded to the end of the process. Calls the loader.
pub(crate) fn pin(address: *const c_void) {
    // SAFETY: `getauxval` reads a vector that the kernel made and nobody changes.
    let in_executable = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    let executable = module(core::ptr::with_exposed_provenance(in_executable));
    let Some(module) = module(address) else { return };
    if module.dli_fname.is_null() || executable.is_some_and(|that| that.dli_fbase == module.dli_fbase) {
        return;
    }
    let flags = libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_NOW;
    // SAFETY: the loader's own string, the name of a library that is already loaded.
    if unsafe { libc::dlopen(module.dli_fname, flags) }.is_null() {
        // The program must not take the loader's error for one of its own.
        // SAFETY: `dlerror` only takes the error away.
        unsafe { libc::dlerror() };
    }
}

fn module(address: *const c_void) -> Option<libc::Dl_info> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `found` is a place for the answer.
    let is_known = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: zeroed or filled by `dladdr`, it is valid: its fields are pointers.
    is_known.then(|| unsafe { found.assume_init() })
}

/// Adds a program by its function, once, and keeps it loaded.
pub(crate) fn add(run_reporters: RunReporters) {
    let program = run_reporters as *mut c_void;
    pin(program);
    for place in &PROGRAMS {
        let known = place.compare_exchange(null_mut(), program, Ordering::AcqRel, Ordering::Acquire);
        if known.is_ok() || known == Err(program) {
            return;
        }
    }
}

/// Runs the reporters of all programs.
pub(crate) fn run_reporters(deadline: Option<Duration>) {
    let milliseconds = deadline.map_or(0, |deadline| deadline.as_millis().max(1));
    let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
    for place in &PROGRAMS {
        let program = place.load(Ordering::Acquire);
        // SAFETY: `add` stores only functions of this type, and a null pointer is `None`.
        let program = unsafe { core::mem::transmute::<*mut c_void, Option<RunReporters>>(program) };
        if let Some(run_reporters) = program {
            run_reporters(milliseconds);
        }
    }
}
