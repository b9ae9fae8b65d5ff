//! Functions that run around a fork.

/// Has functions called before each fork of this process, and after it in the parent and in the child, on the thread
/// that forks.
#[allow(unsafe_code, reason = "asks the C library")]
pub(crate) fn at_fork(before: extern "C" fn(), in_parent: extern "C" fn(), in_child: extern "C" fn()) {
    // SAFETY: the functions have no precondition, and the C library removes them if it unloads the library that calls
    // this.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}
