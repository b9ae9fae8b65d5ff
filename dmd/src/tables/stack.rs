//! The caller's stack, as a trace.
//!
//! Only this file uses a walker.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::tables::trace_id::TraceId;
use crate::tables::trace_tree::TraceTree;
pub(crate) use dmd_unwind::Caller;
use dmd_unwind::{LastStack, Registers, StackRange};

const _: () = assert!(
    crate::options::MOST_FRAMES == dmd_unwind::MOST,
    "the walker must keep as many frames as the options allow"
);

/// The engine's data about one thread's stack. All zero for a new thread.
pub(crate) struct ThreadStack {
    range: StackRange,
    last: LastStack<TraceId>,
    /// The epoch of the last stack, as [`dmd_unwind::replaced`] counts epochs.
    epoch: u32,
    root: TraceId,
    calls: KnownCalls,
}

impl ThreadStack {
    /// Forgets the last stack and the limits of the stack: from now on, the state belongs to another thread. The known
    /// calls stay valid.
    pub(crate) fn forget(&mut self) {
        self.range = StackRange::new();
        self.last.forget();
        self.epoch = 0;
        self.root = TraceId::NONE;
    }

    /// The frames of the last stack, outermost first: the pc of the frame, its stack pointer, and the address of the
    /// word on the stack from which this pc was read. This address is 0 if unknown.
    pub(crate) fn frames(&self) -> impl ExactSizeIterator<Item = [usize; 3]> {
        self.last.frames().map(|(frame, return_at)| [frame.pc, frame.sp, return_at])
    }

    /// Takes the current frames, outwards from the frame of `caller`.
    #[inline(always)]
    pub(crate) fn trace(&mut self, caller: Caller, tree: &TraceTree) -> TraceId {
        let registers = Registers::here();
        let trace = self.tag(&registers, caller, tree);
        if dmd_unwind::replaced() == self.epoch { trace } else { self.begin_epoch(&registers, caller, tree) }
    }

    #[inline(always)]
    fn tag(&mut self, registers: &Registers, caller: Caller, tree: &TraceTree) -> TraceId {
        let calls = &mut self.calls;
        let child = |parent, pc| calls.child(parent, pc, tree);
        let trace = self.last.tag(registers, &mut self.range, Some(caller), self.root, child).0;
        // An empty stack stays `NONE`.
        if trace == self.root { TraceId::NONE } else { trace }
    }

    /// Starts an epoch: another library is loaded at the address of an unloaded library, so the same addresses now
    /// belong to other functions.
    #[cold]
    fn begin_epoch(&mut self, registers: &Registers, caller: Caller, tree: &TraceTree) -> TraceId {
        let epoch = dmd_unwind::replaced();
        self.last.forget();
        let Some(root) = tree.root(epoch) else {
            // This stack stays empty. The next stack tries again to start the epoch.
            tree.note_cut();
            return TraceId::NONE;
        };
        (self.epoch, self.root) = (epoch, root);
        self.tag(registers, caller, tree)
    }
}

/// Nodes of the tree that this thread has looked up, by parent and return address. One load then replaces the search
/// through a node's children, in which each read waits for the previous read. A node never changes its parent or its
/// address, so an entry stays valid forever.
struct KnownCalls([KnownCall; CALLS]);

const CALLS: usize = 512;

#[derive(Clone, Copy)]
#[repr(align(16))]
struct KnownCall {
    pc: u64,
    parent: TraceId,
    /// [`TraceId::NONE`] if the entry is empty.
    node: TraceId,
}

impl KnownCalls {
    #[inline(always)]
    fn child(&mut self, parent: TraceId, pc: usize, tree: &TraceTree) -> TraceId {
        let mixed = (pc as u64 ^ u64::from(parent.0) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let known = &mut self.0[(mixed >> (u64::BITS - CALLS.ilog2())) as usize];
        if known.pc == pc as u64 && known.parent == parent && known.node != TraceId::NONE {
            return known.node;
        }
        let node = tree.child(parent, pc);
        // If the tree is full, it returns the parent.
        if node != parent {
            *known = KnownCall { pc: pc as u64, parent, node };
        }
        node
    }
}

/// Resets the walker in the child of a fork.
pub(crate) fn after_fork_in_child() {
    dmd_unwind::after_fork_in_child();
}

/// The address at which the library's `syscall` enters the kernel; 0 if the library has no such function.
static SYSTEM_CALL: AtomicUsize = AtomicUsize::new(0);

/// The length in bytes of the code that starts at [`SYSTEM_CALL`].
const SYSTEM_CALL_BYTES: usize = 48;

/// Sets the address at which the library's `syscall` enters the kernel. A thread that waits there is not inside a
/// function of the engine.
pub fn system_call_at(code: usize) {
    SYSTEM_CALL.store(code, Ordering::Relaxed);
}

/// For a signal handler: whether it has interrupted a function of this library, or code that such a function called.
pub(crate) fn is_interrupted_here() -> bool {
    let start = SYSTEM_CALL.load(Ordering::Relaxed);
    dmd_unwind::is_interrupted_here(&(start..start + SYSTEM_CALL_BYTES))
}

/// The number of bytes of the walker's own tables.
pub(crate) fn bytes() -> usize {
    dmd_unwind::mapped_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After another library has taken an address, stacks start at a node that is not a frame. An empty stack stays
    /// `NONE`.
    #[test]
    fn a_stack_without_frames_is_none_in_every_epoch() {
        static TREE: TraceTree = TraceTree::new();
        for epoch in [0, 1, 7, 65_535] {
            let root = TREE.root(epoch).unwrap();
            assert_eq!(root == TraceId::NONE, epoch == 0);
            let last = LastStack::new(root);
            let calls = KnownCalls([KnownCall { pc: 0, parent: root, node: TraceId::NONE }; CALLS]);
            let mut stack =
                ThreadStack { range: StackRange::new(), last, epoch: dmd_unwind::replaced(), root, calls };
            // The stack has no readable frame, so no frame counts.
            assert_eq!(stack.trace(Caller::new(8, 0), &TREE), TraceId::NONE, "{epoch}");
        }
        // An epoch beyond the maximum number of epochs has no root.
        assert_eq!(TREE.root(100_000), None);
    }
}
