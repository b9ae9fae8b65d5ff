//! What answering needs from the system beside sockets: whose rights the program has, threads without signals, and code
//! that runs at the program's end.

use std::io;
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};

/// Whether the program has rights that its user does not have. Then it must not trust the user's environment.
#[allow(unsafe_code, reason = "asks the C library")]
pub(crate) fn runs_with_other_rights() -> bool {
    // SAFETY: `getauxval` has no precondition.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Has `function` called when the program ends by itself. Only the first function counts.
#[allow(unsafe_code, reason = "asks the C library")]
pub(crate) fn call_at_exit(function: fn()) {
    static FUNCTION: OnceLock<fn()> = OnceLock::new();
    extern "C" fn call() {
        if let Some(function) = FUNCTION.get() {
            function();
        }
    }
    if FUNCTION.set(function).is_ok() {
        // SAFETY: `call` is a function of this process and may run on any thread at any time.
        unsafe { libc::atexit(call) };
    }
}

/// Starts a thread on which no signal handler of the program runs, except those for the thread's own faults.
#[allow(unsafe_code, reason = "asks the C library")]
pub(crate) fn spawn_without_signals(name: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
    let (mut blocked, mut before) = (empty_set(), empty_set());
    // SAFETY: `empty_set` has initialized the set.
    unsafe { libc::sigfillset(&raw mut blocked) };
    for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT] {
        // SAFETY: `empty_set` has initialized the set.
        unsafe { libc::sigdelset(&raw mut blocked, fault) };
    }
    // A thread starts with the mask of the one that makes it.
    // SAFETY: `empty_set` has initialized both sets.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, &raw mut before) };
    let result = thread::Builder::new().name(name.to_owned()).spawn(run);
    // SAFETY: `pthread_sigmask` has filled the set above; a null pointer means that the old mask is not wanted.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut()) };
    result
}

#[allow(unsafe_code, reason = "asks the C library")]
fn empty_set() -> libc::sigset_t {
    let mut set = core::mem::MaybeUninit::uninit();
    // SAFETY: `set` has room for one set, which `sigemptyset` initializes.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: `sigemptyset` has just initialized the set.
    unsafe { set.assume_init() }
}
