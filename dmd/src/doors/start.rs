//! The beginning and the end of a process, and what the functions of `libdmd.so` call.

use core::ffi::{CStr, c_char, c_void};

use crate::doors::{door, entry};
use crate::engine::{BlockMove, ENGINE, Phase, Setup};
use crate::system::errno::keeping_errno;
use crate::system::process;
use crate::system::slot::slot;

/// Runs after the program's own handlers; other threads may go on.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = entry::process_ends;

/// Whether a preloaded library records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// The options have not been looked at: blocks are recorded without stacks.
    Undecided,
    /// No.
    No,
    /// Yes.
    Yes,
}

/// Whether blocks are recorded, in the preloaded library.
#[inline(always)]
pub fn recording() -> Recording {
    match ENGINE.phase() {
        Phase::Undecided => Recording::Undecided,
        Phase::Starting | Phase::Off => Recording::No,
        Phase::On => Recording::Yes,
    }
}

const NAME: &[u8] = b"DMD=";

/// Looks at the environment of the process that loads the library, and starts. Once, before `main`.
///
/// # Safety
///
/// `environment` is the process's, and no second thread runs.
pub unsafe fn start_preloaded(environment: *mut *mut c_char) {
    let mut at = environment;
    let (entry, variable) = loop {
        if at.is_null() {
            return ENGINE.switch_off();
        }
        // SAFETY: not beyond the null at the end.
        let entry = unsafe { *at };
        if entry.is_null() {
            return ENGINE.switch_off();
        }
        // SAFETY: strings of the environment end in 0, and these are not freed.
        let text: &'static CStr = unsafe { CStr::from_ptr(entry) };
        if text.to_bytes().starts_with(NAME) {
            break (entry, CStr::from_bytes_with_nul(&text.to_bytes_with_nul()[NAME.len()..]).unwrap_or(c""));
        }
        at = at.wrapping_add(1);
    };
    // The program's first allocation, or nothing of the program, is what this is for.
    keeping_errno(|| {
        let (setup, first) = Setup::parse(variable);
        if first.is_none() && process::hands_on(&setup.options) {
            let users = setup.variable.unwrap_or_default();
            // SAFETY: the environment of the process, of which no second thread knows, and the entry found in it.
            unsafe { process::start_again(environment.cast_const().cast(), entry, users) };
        }
        // SAFETY: the value of the entry found above, which no second thread uses.
        unsafe { process::start(first, entry.wrapping_add(NAME.len())) };
        ENGINE.start(setup);
        door::is_preloaded();
        if !setup.options.children {
            // SAFETY: where the entry was found in the environment, which no second thread uses.
            unsafe { process::leave_out(at) };
        }
    });
}

/// Records a block. To be called from the hook itself, whose frame is the stack's innermost.
#[inline(always)]
pub fn record(block: *mut c_void, requested: usize, usable: usize) {
    if ENGINE.phase() == Phase::Undecided {
        ENGINE.record_early(block.addr(), requested, usable);
    } else {
        door::record(block, requested, usable);
    }
}

/// Forgets a block that is about to be freed.
#[inline(always)]
pub fn forget(block: *mut c_void) {
    ENGINE.forget(block.addr());
}

/// Forgets a block that is about to be moved.
#[inline(always)]
pub fn begin_move(block: *mut c_void) -> BlockMove {
    ENGINE.begin_move(block.addr())
}

/// The block was moved.
#[inline(always)]
pub fn commit_move(begun: BlockMove) {
    ENGINE.commit_move(begun);
}

/// The block was not moved.
#[inline(always)]
pub fn roll_back_move(begun: BlockMove) {
    ENGINE.roll_back_move(begun);
}

/// Whether what this thread allocates now is the engine's own, or a part of what another door sees.
#[inline(always)]
pub fn passes_by() -> bool {
    slot().guard.passes_by()
}
