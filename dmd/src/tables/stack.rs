//! The stack of the caller, as a trace.
//!
//! The only place that names a walker.

use crate::tables::trace_id::TraceId;
use crate::tables::trace_tree::TraceTree;
use dmd_unwind::{LastStack, Registers, StackRange};

const _: () = assert!(crate::options::MOST_FRAMES == dmd_unwind::MOST, "what is asked for is kept");

/// What is known of one thread's stack. All zero for a new thread.
pub(crate) struct ThreadStack {
    range: StackRange,
    last: LastStack<TraceId>,
    /// When that was, as [`dmd_unwind::replaced`] has it, and what stacks of that time begin with.
    epoch: u32,
    root: TraceId,
}

impl ThreadStack {
    /// From now on another thread's.
    pub(crate) fn forget(&mut self) {
        self.range = StackRange::new();
        self.last.forget();
        self.epoch = 0;
        self.root = TraceId::NONE;
    }

    /// The frames that are running, from that which goes on at `caller` outwards.
    #[inline(always)]
    pub(crate) fn trace(&mut self, caller: usize, tree: &TraceTree) -> TraceId {
        let registers = Registers::here();
        let trace = self.tag(&registers, caller, tree);
        if dmd_unwind::replaced() == self.epoch { trace } else { self.begin_epoch(&registers, caller, tree) }
    }

    #[inline(always)]
    fn tag(&mut self, registers: &Registers, caller: usize, tree: &TraceTree) -> TraceId {
        let child = |parent, pc| tree.child(parent, pc);
        let trace = self.last.tag(registers, &mut self.range, Some(caller), self.root, child).0;
        // A stack without frames is none.
        if trace == self.root { TraceId::NONE } else { trace }
    }

    /// Another library lies where one was: the same addresses mean other functions from here on.
    #[cold]
    fn begin_epoch(&mut self, registers: &Registers, caller: usize, tree: &TraceTree) -> TraceId {
        let epoch = dmd_unwind::replaced();
        self.last.forget();
        let Some(root) = tree.root(epoch) else {
            // In the next stack, again.
            tree.note_cut();
            return TraceId::NONE;
        };
        (self.epoch, self.root) = (epoch, root);
        self.tag(registers, caller, tree)
    }
}

/// In the child of a fork.
pub(crate) fn after_fork_in_child() {
    dmd_unwind::after_fork_in_child();
}

/// Whether a signal's handler, in which this is called, has interrupted a function of this library, or what such a
/// function called.
pub(crate) fn is_interrupted_here() -> bool {
    dmd_unwind::is_interrupted_here()
}

/// Bytes of the walker's own tables.
pub(crate) fn bytes() -> usize {
    dmd_unwind::mapped_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where another library has taken a place, stacks begin with a node that is no frame: one without frames is
    /// none all the same.
    #[test]
    fn a_stack_without_frames_is_none_in_every_epoch() {
        static TREE: TraceTree = TraceTree::new();
        for epoch in [0, 1, 7, 65_535] {
            let root = TREE.root(epoch).unwrap();
            assert_eq!(root == TraceId::NONE, epoch == 0);
            let last = LastStack::new(root);
            let mut stack =
                ThreadStack { range: StackRange::new(), last, epoch: dmd_unwind::replaced(), root };
            // Nobody on the stack goes on there, so that no frame counts.
            assert_eq!(stack.trace(1, &TREE), TraceId::NONE, "{epoch}");
        }
        // Later stacks are not taken.
        assert_eq!(TREE.root(100_000), None);
    }
}
