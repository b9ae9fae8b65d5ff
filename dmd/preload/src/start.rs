//! When recording starts: at the first allocation that comes when the environment can be seen, or at the
//! latest when this library is initialised.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicBool, Ordering};

use engine::__private::{
    Allocator, Door, Engine, Program, Recording, connect_program, local_door, recording, run_self_test, say,
    start_preloaded,
};

use crate::real;

unsafe extern "C" {
    static environ: *mut *mut c_char;
}

static STARTED: AtomicBool = AtomicBool::new(false);

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = at_start;

extern "C" fn at_start(_: c_int, _: *mut *mut c_char, environment: *mut *mut c_char) {
    start(environment);
}

/// Starts if the environment can be seen: not yet, when the loader allocates.
#[cold]
pub(crate) fn try_to_start() {
    // SAFETY: read before there is a second thread that could change it.
    let environment = unsafe { environ };
    if !environment.is_null() {
        start(environment);
    }
}

/// An executable may define the functions itself; then nobody calls ours.
fn say_if_not_called() {
    // SAFETY: a name that ends in 0.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr()) };
    if real::file_of(first) != real::file_of((&raw const STARTED).cast()) {
        say("the program has a malloc of its own: its blocks are not recorded");
    }
}

fn malloc(bytes: usize) -> *mut u8 {
    // SAFETY: no precondition.
    unsafe { crate::malloc::malloc(bytes) }.cast()
}

fn free(block: *mut u8) {
    // SAFETY: a block of the function above.
    unsafe { crate::malloc::free(block.cast()) }
}

fn start(environment: *mut *mut c_char) {
    if recording() == Recording::Undecided && !STARTED.swap(true, Ordering::AcqRel) {
        // SAFETY: the process's environment, before `main`.
        unsafe { start_preloaded(environment) };
        if recording() == Recording::Yes {
            say_if_not_called();
        }
        run_self_test(Allocator { alloc: malloc, free: |block, _| free(block) });
    }
}

/// The functions of this library's engine, for copies of it that are linked into the program.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "in line with the other C functions")]
pub(crate) extern "C" fn DMDDoor1() -> *const Door {
    local_door()
}

/// Takes the functions of a program that links `memory-reporter`, and gives the engine's; null if nothing
/// is recorded. The table is to stay for the rest of the process.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "in line with the other C functions")]
pub(crate) unsafe extern "C" fn DMDConnect1(program: *const Program) -> *const Engine {
    // SAFETY: the caller passes a program's table.
    unsafe { connect_program(program) }
}
