//! Captures stacks as lists of return addresses.

use core::cell::Cell;

use crate::arch::Registers;
use crate::stack::StackRange;
use crate::walker::{WalkEnd, walk};

/// Fills `out` with the return addresses of the calling function and of its callers, innermost first. Returns their
/// number, and why the walk ended. `stack` must belong to this thread.
#[inline(always)]
pub fn capture(stack: &mut StackRange, out: &mut [usize]) -> (usize, WalkEnd) {
    fill(&Registers::here(), stack, out)
}

/// Like [`capture`], from registers that the caller captured before.
#[inline(never)]
pub fn fill(start: &Registers, stack: &mut StackRange, out: &mut [usize]) -> (usize, WalkEnd) {
    let mut filled = 0;
    let end = match out.first() {
        None => WalkEnd::Enough,
        Some(_) => walk(start, stack, |frame| {
            if let Some(place) = out.get_mut(filled) {
                *place = frame.pc;
                filled += 1;
            }
            filled < out.len()
        }),
    };
    (filled, end)
}

thread_local! {
    static STACK: Cell<StackRange> = const { Cell::new(StackRange::new()) };
}

/// Like [`capture`], for callers that keep no state for each thread.
#[inline(always)]
pub fn capture_here(out: &mut [usize]) -> (usize, WalkEnd) {
    let start = Registers::here();
    let mut stack = STACK.try_with(Cell::get).unwrap_or_default();
    let result = fill(&start, &mut stack, out);
    // At the end of a thread, the thread-local does not exist any more. Then the next call starts with a new value.
    _ = STACK.try_with(|place| place.set(stack));
    result
}
