//! A background thread of the engine, and the system's numbers and names of threads.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use std::ffi::{CStr, CString};

use crate::system::bell::Bell;
use crate::system::engine_threads;
use crate::system::slot::Inside;

/// The size of the thread's stack, also enough for debug builds. Untouched pages take no memory.
const STACK: usize = 1 << 20;

/// The name of the thread.
static NAME: &CStr = c"dmd-recorder";

/// Starts a thread that runs `body` inside the engine's guard, so that the engine does not record its blocks. The
/// thread gets no signals. It is an engine thread if the process can have engine threads. `bell` wakes the thread.
/// Returns false if the system refuses to start the thread.
pub(crate) fn start(bell: &'static Bell, body: fn()) -> bool {
    bell.set_lost(false);
    if engine_threads::are_possible() {
        let inside = move || {
            let _inside = Inside::deeper();
            body();
        };
        return engine_threads::start(&NAME, Some(bell), Box::new(inside));
    }
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: `attributes` is a place for attributes.
    if unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: `pthread_attr_init` made the attributes.
    unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK) };
    // SAFETY: as above.
    unsafe { libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED) };
    let started = with_signals_blocked(|| {
        let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
        let body: *mut c_void = body as *mut c_void;
        // SAFETY: `thread` is a place for the thread, the attributes are valid, and `run` takes this pointer.
        unsafe { libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run, body) == 0 }
    });
    // SAFETY: as above.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    started
}

extern "C" fn run(body: *mut c_void) -> *mut c_void {
    let _inside = Inside::deeper();
    // SAFETY: the call sets the name of this thread, and the name ends in 0.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    // SAFETY: `start` passes a function of this type.
    let body: fn() = unsafe { core::mem::transmute(body) };
    body();
    null_mut()
}

/// Ends this thread by the one system call that every filter of system calls allows.
pub(crate) fn vanish() {
    if engine_threads::is_engine_thread() {
        engine_threads::end();
    }
    // SAFETY: the call ends this thread, which holds no lock. No thread waits for it.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// The system's number of this thread.
pub(crate) fn system_id() -> u32 {
    // SAFETY: the function has no precondition.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// The name of this thread; empty if the system does not give it.
pub(crate) fn name() -> CString {
    const LONGEST: usize = 16;
    let mut name = [0_u8; LONGEST];
    // SAFETY: `name` is a place for a name, which has this many bytes with the 0 at its end.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    CStr::from_bytes_until_nul(&name).map(CStr::to_owned).unwrap_or_default()
}

/// Runs `body` with all signals blocked: a thread that `body` starts inherits the mask.
fn with_signals_blocked<T>(body: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `all` is a place for the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigfillset` filled the set, and `before` is a place for the old one.
    if unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) } != 0 {
        return body();
    }
    let result = body();
    // SAFETY: `pthread_sigmask` above succeeded and wrote the set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut()) };
    result
}
