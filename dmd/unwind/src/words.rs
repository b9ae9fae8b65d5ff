//! The words that a step read from the stack.

/// The addresses of the words that a step read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackWords {
    /// The address of the pc of the frame that the step led to. 0 if the step depends on more than the frame that it left
    /// and these words: on other registers, or on a module that can be unloaded.
    pub(crate) pc: usize,
    /// The address of the frame pointer of that frame. Equal to `pc` if the step did not change the frame pointer.
    pub(crate) fp: usize,
}

impl StackWords {
    /// The step depends on more than its words.
    pub(crate) const MORE: StackWords = StackWords { pc: 0, fp: 0 };
    /// The step led to the point where a signal interrupted the program. From there the walk uses another rule than
    /// from a frame that waits for a call at the same pc.
    pub(crate) const INTERRUPTED: StackWords = StackWords { pc: 0, fp: 1 };
}
