//! A signal handler allocates at any point of the program, even while DMD takes a stack. Usage: `handled FILE`. The
//! program writes a dump, and prints the number of blocks of 1001 bytes that the handler has made.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use dmd::{Dmd, Mode, Options, Stacks};

const BYTES: usize = 2 << 20;
const MOST_SIGNALS: usize = 300;
/// The size of the blocks that the program makes and frees. No other code makes blocks of this size.
const OWN: usize = 4242;
const PLACES: usize = 8;

/// An allocator that a signal may interrupt; the C library's allocator must not be interrupted. `Bump` frees nothing.
/// Blocks of [`OWN`] bytes reuse a few places, since only one such block lives at a time.
#[repr(C, align(4096))]
struct Bump {
    memory: UnsafeCell<[u8; BYTES]>,
    used: AtomicUsize,
    turn: AtomicUsize,
}

impl Bump {
    const fn new() -> Self {
        Self { memory: UnsafeCell::new([0; BYTES]), used: AtomicUsize::new(0), turn: AtomicUsize::new(0) }
    }
}

// SAFETY: each block has its own part of the memory.
unsafe impl Sync for Bump {}

// SAFETY: blocks are disjoint parts of the memory, with the requested size and alignment.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = if layout.size() == OWN {
            self.turn.fetch_add(1, Ordering::Relaxed) % PLACES * 8192
        } else {
            let bytes = layout.size() + layout.align().max(16);
            (PLACES * 8192 + self.used.fetch_add(bytes, Ordering::Relaxed))
                .next_multiple_of(layout.align().max(16))
        };
        if start + layout.size() > BYTES {
            return std::ptr::null_mut();
        }
        self.memory.get().cast::<u8>().wrapping_add(start)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Dmd<Bump> =
    Dmd::switched_on(Bump::new(), Options::new().mode(Mode::Live).stacks(Stacks::Full).quiet(true));

static SIGNALS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handler(_: c_int) {
    black_box(Box::leak(Box::new([1_u8; 1001])));
    if SIGNALS.fetch_add(1, Ordering::Relaxed) + 1 < MOST_SIGNALS {
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
    let file = std::env::args_os().nth(1).expect("a file");
    // SAFETY: the handler has the type that the kernel calls.
    unsafe { libc::signal(libc::SIGALRM, handler as extern "C" fn(c_int) as *const () as usize) };
    next_signal();
    while SIGNALS.load(Ordering::Relaxed) < MOST_SIGNALS {
        black_box(Box::new([1_u8; OWN]));
    }
    dmd::dump(file).expect("recording");
    println!("{}", SIGNALS.load(Ordering::Relaxed));
}
