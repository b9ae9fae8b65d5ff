//! The start and the end of a process.

use crate::boundary::{black_box, dumping, entry};
use crate::engine::{ENGINE, Phase};
use crate::recording;

/// Runs after the program's own exit handlers, while other threads may continue.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = entry::process_ends;

/// Runs before the program's `main`, once the C library is ready.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(windows, unsafe(link_section = ".CRT$XCU"))]
static AT_START: extern "C" fn() = process_starts;

extern "C" fn process_starts() {
    // Exit handlers that the program registers later run before this one.
    #[cfg(not(target_os = "linux"))]
    // SAFETY: the C library calls this function of this library at the end of the process.
    unsafe {
        libc::atexit(entry::process_ends)
    };
    // The preloaded library starts the writer later, when it can have engine threads.
    if ENGINE.phase() == Phase::On && !dumping::are_hooks_here() {
        recording::start_writer();
    }
    if !dumping::are_hooks_here() {
        black_box::start();
    }
}
