//! Stacks as lists of return addresses.

use core::cell::Cell;

use crate::arch::Registers;
use crate::stack::StackRange;
use crate::walker::{End, walk};

/// Fills `out` with the return addresses of the function that this is called in, innermost first, and says
/// how many there are. `stack` is this thread's.
#[inline(always)]
pub fn capture(stack: &mut StackRange, out: &mut [usize]) -> (usize, End) {
    fill(&Registers::here(), stack, out)
}

/// As [`capture`], from registers that were read before.
#[inline(never)]
pub fn fill(start: &Registers, stack: &mut StackRange, out: &mut [usize]) -> (usize, End) {
    let mut filled = 0;
    let end = match out.first() {
        None => End::Enough,
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

/// [`capture`] for callers that have no state of their own for each thread.
#[inline(always)]
pub fn capture_here(out: &mut [usize]) -> (usize, End) {
    let start = Registers::here();
    let mut stack = STACK.try_with(Cell::get).unwrap_or_default();
    let result = fill(&start, &mut stack, out);
    // Gone at the end of a thread: then the next call begins anew.
    _ = STACK.try_with(|place| place.set(stack));
    result
}
