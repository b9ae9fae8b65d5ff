//! The programs whose reporters the engine can run: those that link `memory-reporter` and have connected.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use core::time::Duration;

use memory_reporter::bridge::Program;

/// More than one copy of `memory-reporter` is rare: each library that links its own has one.
const MOST: usize = 8;

static PROGRAMS: [AtomicPtr<Program>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];

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

/// Adds a program, once, and keeps it loaded.
pub(crate) fn add(program: &'static Program) {
    let program = core::ptr::from_ref(program);
    pin(program.cast());
    for place in &PROGRAMS {
        let known =
            place.compare_exchange(null_mut(), program.cast_mut(), Ordering::AcqRel, Ordering::Acquire);
        if known.is_ok() || known.is_err_and(|known| core::ptr::eq(known, program)) {
            return;
        }
    }
}

/// Runs the reporters of all programs.
pub(crate) fn run_reporters(deadline: Option<Duration>) {
    for place in &PROGRAMS {
        // SAFETY: null, or a static table of a program that `add` keeps loaded.
        if let Some(program) = unsafe { place.load(Ordering::Acquire).as_ref() } {
            program.run_reporters(deadline);
        }
    }
}
