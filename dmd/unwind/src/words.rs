//! What a step read of the stack.

/// What a step read of the stack: the places lie so many words below the stack pointer of the frame that it
/// led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// Where the frame's pc lay. 0 if the step depends on more than on the frame that it left and on these
    /// words: on other registers, or on a module that can be unloaded.
    pub(crate) pc: u16,
    /// Where its frame pointer lay; 0 if that is the one of the frame that the step left.
    pub(crate) fp: u16,
}

impl Words {
    /// The step depends on more than on its words.
    pub(crate) const MORE: Words = Words { pc: 0, fp: 0 };
    /// The step led to where a signal interrupted the program: it goes on by another rule than a frame that
    /// waits for a call there.
    pub(crate) const INTERRUPTED: Words = Words { pc: 0, fp: 1 };
}
