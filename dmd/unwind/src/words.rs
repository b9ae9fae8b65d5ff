//! The words that a step read from the stack.

/// The words that a step read from the stack. Each place is a number of words below the stack pointer of the frame
/// that the step led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// The place of the frame's pc. 0 if the step depends on more than the frame that it left and these words: on
    /// other registers, or on a module that can be unloaded.
    pub(crate) pc: u16,
    /// The place of the frame's frame pointer; 0 if the step kept that of the frame that it left.
    pub(crate) fp: u16,
}

impl Words {
    /// The step depends on more than its words.
    pub(crate) const MORE: Words = Words { pc: 0, fp: 0 };
    /// The step led to the point where a signal interrupted the program. From there the walk uses another rule than
    /// from a frame that waits for a call at the same pc.
    pub(crate) const INTERRUPTED: Words = Words { pc: 0, fp: 1 };
}
