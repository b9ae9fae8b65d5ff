//! Supports the threads that answer: the rights of the program, threads without signals, and code that runs when the
//! program ends.

use core::ffi::{c_char, c_short};
use core::fmt;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use core::time::Duration;
use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::thread;

/// A provider of threads outside of the C library, for the threads of this crate. A preloaded engine of DMD is such a
/// provider.
#[doc(hidden)]
pub struct ThreadHost {
    /// Starts a thread that receives no signals. False if the system refuses.
    pub start: fn(Box<dyn FnOnce() + Send>) -> bool,
    /// Waits, in a thread of this provider, until a descriptor is ready for these events of `poll`. False if the time
    /// ends first.
    pub wait: fn(RawFd, c_short, Option<Duration>) -> bool,
    /// Whether this thread is a thread of this provider.
    pub is_here: fn() -> bool,
}

impl fmt::Debug for ThreadHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadHost").finish_non_exhaustive()
    }
}

static HOST: OnceLock<&'static ThreadHost> = OnceLock::new();

/// The C library's variable that is not 0 while the process has one thread. Null if the library has no such variable.
static SINGLE_THREADED: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Makes this copy of the crate start its threads with `host`. Called at the start of the process.
#[doc(hidden)]
#[allow(unsafe_code, reason = "calls the loader")]
pub fn host_threads(host: &'static ThreadHost) {
    // SAFETY: the name ends in 0.
    let variable = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    if variable.is_null() {
        // SAFETY: the function has no precondition. It clears the error, so that the program does not find it.
        unsafe { libc::dlerror() };
    }
    SINGLE_THREADED.store(variable.cast(), Ordering::Relaxed);
    HOST.get_or_init(|| host);
}

/// The host of this copy's threads; `None` if they are threads of the C library.
pub(crate) fn thread_host() -> Option<&'static ThreadHost> {
    HOST.get().copied()
}

/// Whether a host provides this copy's threads, instead of the C library.
pub(crate) fn is_hosted() -> bool {
    thread_host().is_some()
}

/// Whether this thread may call functions that take locks of the C library. While the process has only one thread of
/// the C library, the library skips its locks, so a thread of a host must not call such functions.
#[allow(unsafe_code, reason = "a variable of the C library")]
pub(crate) fn may_lock_c_library() -> bool {
    if !thread_host().is_some_and(|host| (host.is_here)()) {
        return true;
    }
    let single = SINGLE_THREADED.load(Ordering::Relaxed);
    if single.is_null() {
        return false;
    }
    // SAFETY: the variable belongs to the C library and lives as long as the process. The C library may write it
    // meanwhile, so the read is atomic.
    let single = unsafe { AtomicU8::from_ptr(single.cast()) };
    single.load(Ordering::Relaxed) == 0
}

impl ThreadHost {
    /// Starts a thread that receives no signals. The error is `WouldBlock` if the system refuses.
    pub(crate) fn spawn(&self, run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        if (self.start)(run) { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }
}

/// Whether the program has rights that its user does not have. It must then not trust the user's environment.
#[allow(unsafe_code, reason = "calls the C library")]
pub(crate) fn runs_with_other_rights() -> bool {
    // SAFETY: `getauxval` has no precondition.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Registers `function` to run when the program ends normally. Later calls are ignored.
#[allow(unsafe_code, reason = "calls the C library")]
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

/// Starts a thread on which no signal handlers of the program run, except the handlers for faults of the thread itself.
#[allow(unsafe_code, reason = "calls the C library")]
pub(crate) fn spawn_without_signals(name: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    if let Some(host) = thread_host() {
        return host.spawn(run);
    }
    let (mut blocked, mut before) = (empty_set(), empty_set());
    // SAFETY: `empty_set` has initialized the set.
    unsafe { libc::sigfillset(&raw mut blocked) };
    for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT] {
        // SAFETY: `empty_set` has initialized the set.
        unsafe { libc::sigdelset(&raw mut blocked, fault) };
    }
    // A new thread inherits the signal mask of its creator.
    // SAFETY: `empty_set` has initialized both sets.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, &raw mut before) };
    let result = thread::Builder::new().name(name.to_owned()).spawn(run).map(drop);
    // SAFETY: `pthread_sigmask` has filled the set above. A null pointer means that the old mask is not requested.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut()) };
    result
}

#[allow(unsafe_code, reason = "calls the C library")]
fn empty_set() -> libc::sigset_t {
    let mut set = core::mem::MaybeUninit::uninit();
    // SAFETY: `set` has room for one set, which `sigemptyset` initializes.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: `sigemptyset` has just initialized the set.
    unsafe { set.assume_init() }
}
