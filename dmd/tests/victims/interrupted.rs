//! A signal handler requests a dump with reports at any point of the program: either the reporters run, or the handler
//! gets an error. Usage, under `libdmd.so`: `interrupted FILE`.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::ffi::{CString, c_char, c_int};
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use memory_reporter::{MemoryReporter, Reports};

struct Allocates;
memory_reporter::register_reporter!(Allocates);

impl MemoryReporter for Allocates {
    fn name(&self) -> &str {
        "explicit/allocates"
    }

    fn collect_reports(&self, _: &mut Reports) {
        RUNS.fetch_add(1, Ordering::Relaxed);
        black_box(vec![1_u8; 20_000]);
    }
}

type Dump = extern "C" fn(*const c_char) -> c_int;

static DUMP: OnceLock<(Dump, CString)> = OnceLock::new();
static RUNS: AtomicUsize = AtomicUsize::new(0);
static SIGNALS: AtomicUsize = AtomicUsize::new(0);
static OTHER_ERRORS: AtomicUsize = AtomicUsize::new(0);

const MOST_SIGNALS: usize = 200;

fn dump() -> c_int {
    let (dump, path) = DUMP.get().expect("set by main");
    dump(path.as_ptr())
}

extern "C" fn handler(_: c_int) {
    if ![0, libc::EBUSY].contains(&dump()) {
        OTHER_ERRORS.fetch_add(1, Ordering::Relaxed);
    }
    if SIGNALS.fetch_add(1, Ordering::Relaxed) < MOST_SIGNALS {
        next_signal();
    }
}

fn next_signal() {
    let after = libc::timeval { tv_sec: 0, tv_usec: 300 };
    let once = libc::itimerval { it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 }, it_value: after };
    // SAFETY: `once` is a valid time, and a null place for the old time is allowed.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const once, std::ptr::null_mut()) };
}

fn main() {
    let path = CString::new(std::env::args().nth(1).expect("a file")).expect("no 0");
    // SAFETY: the literal ends in 0.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"DMDReportAndDump".as_ptr()) };
    assert!(!symbol.is_null());
    // SAFETY: `dmd.h` declares the function of this name with this type.
    let function: Dump = unsafe { std::mem::transmute(symbol) };
    assert!(DUMP.set((function, path)).is_ok());
    black_box(Box::leak(vec![1_u8; 4242].into_boxed_slice()));

    let mut alarm = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `alarm` is valid for a write of a set.
    unsafe { libc::sigemptyset(alarm.as_mut_ptr()) };
    // SAFETY: the call above has initialized the set.
    unsafe { libc::sigaddset(alarm.as_mut_ptr(), libc::SIGALRM) };
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, alarm.as_ptr(), std::ptr::null_mut()) };
    // This second thread is needed, because the C library takes its locks only in processes with several threads. The
    // thread gets no signal.
    std::thread::spawn(|| {
        loop {
            std::thread::park();
        }
    });
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, alarm.as_ptr(), std::ptr::null_mut()) };
    // SAFETY: the handler has the type that the kernel calls.
    unsafe { libc::signal(libc::SIGALRM, handler as extern "C" fn(c_int) as *const () as usize) };
    next_signal();
    let mut bytes = 10_000;
    while SIGNALS.load(Ordering::Relaxed) < MOST_SIGNALS {
        black_box(vec![1_u8; bytes]);
        bytes = 10_000 + bytes * 7 % 30_000;
    }
    // SAFETY: `SIG_IGN` is a valid action for this signal.
    unsafe { libc::signal(libc::SIGALRM, libc::SIG_IGN) };
    let said = if OTHER_ERRORS.load(Ordering::Relaxed) > 0 {
        "another error"
    } else if RUNS.load(Ordering::Relaxed) == 0 {
        "no reports"
    } else if dump() != 0 {
        "no dump"
    } else {
        "done"
    };
    println!("{said}");
}
