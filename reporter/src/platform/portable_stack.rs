//! This thread's stack on systems and processors that the crate `stacker` supports.

/// The free bytes of the stack; `None` if the system does not provide the figure.
pub(crate) fn remaining_stack(_here: usize) -> Option<usize> {
    stacker::remaining_stack()
}

/// Calls `f` on a new stack of at least `size` bytes, and frees the stack. On systems where `stacker` cannot make a
/// stack, calls `f` directly.
pub(crate) fn on_fresh_stack<T>(size: usize, f: impl FnOnce() -> T) -> T {
    stacker::grow(size, f)
}
