//! Runs functions before and after a fork.

/// Registers functions to run before each fork of this process, and after it in the parent and in the child. They run
/// on the thread that forks.
#[allow(unsafe_code, reason = "calls the C library")]
pub(crate) fn at_fork(before: extern "C" fn(), in_parent: extern "C" fn(), in_child: extern "C" fn()) {
    // SAFETY: the functions have no precondition, and the C library unregisters them if it unloads the library that
    // contains them.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}
