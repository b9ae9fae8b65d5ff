//! The stack of the caller: return addresses, innermost first.
//!
//! The only place that names an unwinder.

use core::ffi::{c_int, c_void};

unsafe extern "C" {
    fn _Unwind_Backtrace(step: extern "C" fn(*mut c_void, *mut c_void) -> c_int, data: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

struct Walk<'a> {
    frames: &'a mut [usize],
    len: usize,
}

extern "C" fn step(context: *mut c_void, data: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const END_OF_STACK: c_int = 5;
    // SAFETY: the walk that `stack` passed on.
    let walk = unsafe { &mut *data.cast::<Walk<'_>>() };
    let Some(frame) = walk.frames.get_mut(walk.len) else { return END_OF_STACK };
    // SAFETY: the context that the unwinder has just passed.
    *frame = unsafe { _Unwind_GetIP(context) };
    if *frame == 0 {
        return END_OF_STACK;
    }
    walk.len += 1;
    GO_ON
}

/// Writes the return addresses of the frames that are running, this function's among them, and tells how
/// many. Called inside the engine, so that what the unwinder allocates is not recorded.
#[inline(never)]
pub(crate) fn stack(frames: &mut [usize]) -> usize {
    let mut walk = Walk { frames, len: 0 };
    // SAFETY: `step` takes the data for what it is, and does not unwind.
    unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    walk.len
}

/// The first walk may load a library and allocate: to be done outside of any hook.
pub(crate) fn warm_up() {
    stack(&mut [0; 4]);
}
