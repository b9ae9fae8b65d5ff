//! What a signal has interrupted, as the stack of its handler tells.

use crate::arch::Registers;
use crate::module::Module;
use crate::stack::StackRange;
use crate::walker::walk_by_words;
use crate::words::Words;

/// Whether a signal's handler, in which this is called, has interrupted a function of this library, or what such a
/// function called.
#[inline(never)]
pub fn is_interrupted_here() -> bool {
    let here = is_interrupted_here as fn() -> bool;
    let Some(library) = Module::find(here as usize) else { return false };
    let (mut is_interrupted, mut is_here) = (false, false);
    walk_by_words(&Registers::here(), &mut StackRange::new(), |frame, words| {
        is_interrupted |= words == Words::INTERRUPTED;
        is_here |= is_interrupted && library.contains(frame.pc);
        !is_here
    });
    is_here
}
