//! What the portable engine does not know of stacks: their bounds. It assumes that they have room. So a stack that
//! overflows inside the engine ends the process, as any overflow does in Rust.

/// It has no state.
pub(super) struct StackRoom;

impl StackRoom {
    pub(super) fn is_below(&self, _stack_pointer: usize) -> bool {
        true
    }
}

/// No stack that is known. A thread that jumps out of a hook counts as inside until its stack pointer is near the place
/// where it entered: meanwhile its blocks are recorded without stacks.
pub(super) struct StackRange;

impl StackRange {
    pub(super) const fn new() -> Self {
        Self
    }

    pub(super) fn covers(&mut self, _stack_pointer: usize) -> bool {
        false
    }
}
