//! The start and the end of a process.

use crate::boundary::entry;
use crate::engine::{ENGINE, Phase};
use crate::recording;

/// Runs after the program's own exit handlers, while other threads may continue.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = entry::process_ends;

/// Runs before the program's `main`, once the C library is ready.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = recording_starts;

extern "C" fn recording_starts() {
    if ENGINE.phase() == Phase::On {
        recording::start_writer();
    }
}
