//! The programs whose reporters can be run: those that link `memory-reporter` and have said so.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use core::time::Duration;

use memory_reporter::bridge::Program;

/// More copies of `memory-reporter` than one are rare: one for each library that links its own.
const MOST: usize = 8;

static PROGRAMS: [AtomicPtr<Program>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];

/// Adds a program, once.
pub(crate) fn add(program: *const Program) {
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
        // SAFETY: null, or a static table of a program.
        if let Some(program) = unsafe { place.load(Ordering::Acquire).as_ref() } {
            program.run_reporters(deadline);
        }
    }
}
