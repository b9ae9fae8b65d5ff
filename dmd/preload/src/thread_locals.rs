//! The function that registers the destructor of a thread-local. The C library's function takes a lock and allocates.
//! Engine threads must not do that, so they have their own list of destructors.

use core::ffi::{c_int, c_void};

use engine::__private::{Destructor, at_engine_thread_end, is_engine_thread};

use crate::real;

/// Behaves as the C library's function of this name.
///
/// # Safety
///
/// The contract of the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __cxa_thread_atexit_impl(
    destructor: Destructor,
    object: *mut c_void,
    library: *mut c_void,
) -> c_int {
    if is_engine_thread() {
        at_engine_thread_end(destructor, object);
        return 0;
    }
    real::known();
    // SAFETY: the caller guarantees that the arguments suit this function; they are passed on unchanged.
    unsafe { real::__cxa_thread_atexit_impl(destructor, object, library) }
}
