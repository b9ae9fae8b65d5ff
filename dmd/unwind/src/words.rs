//! The words that a step read from the stack.

/// The addresses of the words that a step read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackWords {
    /// The address of the pc of the frame after the step. 0 if the step depends on more than the frame before it and
    /// these words: on other registers, or on a module that can be unloaded.
    pub(crate) pc: usize,
    /// The address of the frame pointer of the frame after the step. Equal to `pc` if the step did not change the
    /// frame pointer.
    pub(crate) fp: usize,
}

impl StackWords {
    /// The value for a step that depends on more than the words on the stack.
    pub(crate) const MORE: StackWords = StackWords { pc: 0, fp: 0 };
    /// The value for a step to the point at which a signal interrupted the program. It differs from
    /// [`MORE`](Self::MORE), since at the same pc the walk uses one rule for an interrupted frame, and another rule for
    /// a frame that waits for a call.
    pub(crate) const INTERRUPTED: StackWords = StackWords { pc: 0, fp: 1 };
}
