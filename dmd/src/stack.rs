//! The stack of the caller, as a trace.
//!
//! The only place that names a walker.

use crate::trace_tree::{TraceId, TraceTree};
use crate::unwind::{self, LastStack, Registers, StackRange};

/// The most frames that are kept of a stack.
pub(crate) const MAX_FRAMES: usize = unwind::MOST;

/// What is known of one thread's stack. All zero for a new thread.
pub(crate) struct ThreadStack {
    range: StackRange,
    last: LastStack<TraceId>,
}

impl ThreadStack {
    /// From now on another thread's.
    pub(crate) fn forget(&mut self) {
        self.range = StackRange::new();
        self.last.forget();
    }

    /// The frames that are running, from that which goes on at `caller` outwards.
    #[inline(always)]
    pub(crate) fn trace(&mut self, caller: usize, tree: &TraceTree) -> TraceId {
        let child = |parent, pc| tree.child(parent, pc);
        self.last.tag(&Registers::here(), &mut self.range, Some(caller), TraceId::NONE, child).0
    }
}

/// In the child of a fork.
pub(crate) fn after_fork_in_child() {
    unwind::after_fork_in_child();
}

/// Bytes of the walker's own tables.
pub(crate) fn bytes() -> usize {
    unwind::mapped_bytes()
}
