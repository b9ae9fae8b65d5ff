//! The functions that the loader and programs call: the start of this library, and the table of its engine.

use core::ffi::{c_char, c_int};

use engine::__private::{EngineTable, engine_table, listen_if_asked, prepare_engine_threads, start_threads};

use crate::injected;
use crate::malloc::THIS_LIBRARY;
use crate::start::start;
use crate::{plugins, static_allocators};

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = at_start;

extern "C" fn at_start(_: c_int, _: *mut *mut c_char, environment: *mut *mut c_char) {
    if injected::is_injected() {
        return;
    }
    start(environment, THIS_LIBRARY);
    static_allocators::hook_all();
    plugins::start();
    prepare_engine_threads();
    start_threads();
    listen_if_asked();
}

/// Returns the table of functions of this library's engine. The name is `engine_abi::SYMBOL` of `memory-reporter`.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "in line with the other C functions")]
pub(crate) extern "C" fn DMDEngine3() -> *const EngineTable {
    engine_table()
}
