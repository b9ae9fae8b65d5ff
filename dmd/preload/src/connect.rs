//! The functions that the loader and programs call: the start of this library, and the tables of its engine.

use core::ffi::{c_char, c_int};

use engine::__private::{Door, Engine, Program, connect_program, local_door};

use crate::malloc::THIS_LIBRARY;
use crate::start::start;

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = at_start;

extern "C" fn at_start(_: c_int, _: *mut *mut c_char, environment: *mut *mut c_char) {
    start(environment, THIS_LIBRARY);
}

/// The functions of this library's engine, for copies of the engine in the program.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "in line with the other C functions")]
pub(crate) extern "C" fn DMDDoor1() -> *const Door {
    local_door()
}

/// Takes the functions of a program that links `memory-reporter`, and returns those of the engine; null if DMD does
/// not record. The caller must keep its table valid for the rest of the process.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "in line with the other C functions")]
pub(crate) unsafe extern "C" fn DMDConnect1(program: *const Program) -> *const Engine {
    // SAFETY: the caller, `memory-reporter` in the program, passes a table that stays valid.
    unsafe { connect_program(program) }
}
