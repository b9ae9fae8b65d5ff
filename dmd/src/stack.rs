//! The stack of the caller: return addresses, innermost first.
//!
//! The only place that names a walker. A walk that remembers the last one would begin here.

use crate::unwind::{self, StackRange};

/// Writes the return addresses of the frames that are running, and tells how many. `range` is this
/// thread's.
#[inline(always)]
pub(crate) fn stack(range: &mut StackRange, frames: &mut [usize]) -> usize {
    unwind::capture(range, frames).0
}

/// In the child of a fork.
pub(crate) fn after_fork_in_child() {
    unwind::after_fork_in_child();
}

/// Changes whenever a return address was found to be of another library than before.
#[inline(always)]
pub(crate) fn epoch() -> u32 {
    unwind::replaced()
}

/// Bytes of the walker's own tables.
pub(crate) fn bytes() -> usize {
    unwind::mapped_bytes()
}
