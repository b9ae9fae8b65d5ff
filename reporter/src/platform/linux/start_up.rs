//! Code that runs before `main`, and at the program's end.

use std::io;
use std::sync::Once;
use std::thread::{self, JoinHandle};

/// Runs before `main` in every program that is linked with this crate.
#[used]
#[allow(unsafe_code, reason = "a place in the file that the loader knows")]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    if crate::bridge::find_preloaded() && !runs_with_other_rights() {
        crate::live::start_up();
    }
}

/// Whether the program has rights that its user has not, whose environment then is not to be
/// trusted.
#[allow(unsafe_code, reason = "asks the C library")]
fn runs_with_other_rights() -> bool {
    // SAFETY: no precondition.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Has [`at_exit`](crate::live::at_exit) called when the program ends by itself.
#[allow(unsafe_code, reason = "asks the C library")]
pub(crate) fn call_at_exit() {
    extern "C" fn call() {
        crate::live::at_exit();
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `call` may be called at any time.
        unsafe { libc::atexit(call) };
    });
}

/// Starts a thread on which no signal handler of the program's runs, but those for its own faults.
#[allow(unsafe_code, reason = "asks the C library")]
pub(crate) fn spawn_without_signals(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (mut blocked, mut before) = (empty_set(), empty_set());
    // SAFETY: the set was initialized.
    unsafe { libc::sigfillset(&raw mut blocked) };
    for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT] {
        // SAFETY: the set was initialized.
        unsafe { libc::sigdelset(&raw mut blocked, fault) };
    }
    // A thread starts with the mask of the one that makes it.
    // SAFETY: both sets were initialized.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, &raw mut before) };
    let result = thread::Builder::new().name(name.to_owned()).spawn(run);
    // SAFETY: the set was initialized; nobody is told of the one before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut()) };
    result
}

#[allow(unsafe_code, reason = "asks the C library")]
fn empty_set() -> libc::sigset_t {
    let mut set = core::mem::MaybeUninit::uninit();
    // SAFETY: there is room for a set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: it has just been initialized.
    unsafe { set.assume_init() }
}
