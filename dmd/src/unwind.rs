//! The stack walker of the hooks: who called this, as return addresses.
//!
//! It is called inside of malloc and free, so it allocates nothing (its tables are mappings of their own),
//! waits for no lock, cannot panic and changes neither errno nor anything of the program. Stack memory is
//! read only where it is known to be mapped.
//!
//! How: for each pc a *rule* (CFA = stack or frame pointer + constant, where the frame pointer is saved,
//! where the return address is) is compiled from `.eh_frame` when the pc is met first, and kept in one table
//! for all threads. A step is then one look-up, two comparisons and one or two loads; a frame with a frame
//! pointer is just one whose rule says so. Frames that are stranger take the general step, which follows
//! all registers through all of DWARF: `.plt` entries, realigned stacks, signal frames.
//!
//! ```text
//! last      the walk that remembers the last one
//! walker    the loop: packed rule, else wide rule, else general step
//! cache     pc -> rule, and which modules the rules belong to
//! rule      row -> rule
//! known     the general step
//! row, eh_frame, expression, reader    DWARF
//! module    pc -> module -> sections
//! stack     what may be read
//! own       where the thread's own stack lies
//! ```
//!
//! [`Frame`] is all that a usual step depends on beside the words that it reads. So a walk that meets a frame of
//! the thread's last one, all words further out being what they were, need not go on: see [`LastStack`].
//!
//! Code without unwind information (of JIT compilers, say) ends a walk.

#[cfg_attr(target_arch = "x86_64", path = "unwind/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "unwind/aarch64.rs")]
mod arch;
mod cache;
mod eh_frame;
mod expression;
mod interrupted;
mod known;
mod last;
mod loaded;
mod module;
mod own;
mod reader;
mod row;
mod rule;
mod sections;
mod stack;
mod sys;
mod walker;

pub use arch::Registers;
pub(crate) use interrupted::is_interrupted_here;
pub use last::{LastStack, MOST};
pub(crate) use loaded::{Loaded, Sample, is_loaded, loaded, sample_at};
pub use sections::{Sections, module_both_ways};
pub use stack::StackRange;
pub(crate) use sys::is_readable;
pub use walker::{End, Frame, walk};

use core::cell::Cell;

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

/// Frees the walker's flag, which a thread that does not exist in the child may have held.
pub fn after_fork_in_child() {
    cache::CACHE.after_fork_in_child();
}

/// Changes whenever a pc was found to be of another module than before: what is known of pcs is void.
#[inline(always)]
pub(crate) fn replaced() -> u32 {
    cache::replaced()
}

/// How many rules were compiled, for whoever wants to know whether they are kept.
pub fn compiled_rules() -> usize {
    cache::CACHE.compiled()
}

/// Bytes that the walker's tables have mapped; more than they occupy, as most of it is never touched.
pub fn mapped_bytes() -> usize {
    cache::CACHE.bytes()
}
