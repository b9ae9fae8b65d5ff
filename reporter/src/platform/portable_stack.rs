//! This thread's stack on systems and processors on which the crate `stacker` knows it.

/// How many bytes of the stack are free; `None` if the system does not know.
pub(crate) fn remaining_stack(_here: usize) -> Option<usize> {
    stacker::remaining_stack()
}

/// Calls `f` on a stack of at least `size` bytes that is freed afterwards, where the crate can make one.
pub(crate) fn on_fresh_stack<T>(size: usize, f: impl FnOnce() -> T) -> T {
    stacker::grow(size, f)
}
