//! Finds out which code a signal has interrupted, from the stack of its handler.

use core::ops::Range;

use crate::arch::Registers;
use crate::module::UnwindModule;
use crate::stack::StackRange;
use crate::walker::{WalkStart, walk_by_words};
use crate::words::StackWords;

/// Whether a signal has interrupted a function of this library, or a function that it called. The library's code in
/// the range `except` does not count. Only a signal handler may call this.
#[inline(never)]
pub fn is_interrupted_here(except: &Range<usize>) -> bool {
    let here = is_interrupted_here as fn(&Range<usize>) -> bool;
    let Some(library) = UnwindModule::find(here as usize) else { return false };
    let (mut is_interrupted, mut is_here) = (false, false);
    walk_by_words(&Registers::here(), &mut StackRange::new(), WalkStart::Outside, |frame, words| {
        is_interrupted |= words == StackWords::INTERRUPTED;
        is_here |= is_interrupted && library.contains(frame.pc) && !except.contains(&frame.pc);
        !is_here
    });
    is_here
}
