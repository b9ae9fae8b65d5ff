//! Stubs: the portable engine cannot find the limits of stacks. It assumes that they have room. So a stack that
//! overflows inside the engine ends the process, like any overflow in Rust.

/// Has no state: every stack counts as a stack with room.
pub(super) struct StackRoom;

impl StackRoom {
    pub(super) fn is_below(&self, _stack_pointer: usize) -> bool {
        true
    }
}

/// A range that contains no address. A thread that jumps out of a hook counts as inside of the engine until its stack
/// pointer is near the place where it entered. Until then its blocks are recorded without stacks.
pub(super) struct StackRange;

impl StackRange {
    pub(super) const fn new() -> Self {
        Self
    }

    pub(super) fn covers(&mut self, _stack_pointer: usize) -> bool {
        false
    }
}
