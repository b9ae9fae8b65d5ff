//! Threads that make, grow, pass on and free blocks, end and panic, while signals interrupt them and the process forks
//! and writes dumps. Usage, with `DMD`: `crowd FILE CHILDS_FILE`. The process writes a dump into the first file, and
//! each forked child writes a dump into the second file.

#![allow(clippy::print_stderr, reason = "tells the test")]

use std::alloc::System;
use std::ffi::c_int;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use dmd::Dmd;

#[global_allocator]
static ALLOCATOR: Dmd<System> = Dmd::new(System);

const THREADS: usize = 4;
const ROUNDS: usize = 200;
const FORKS: usize = 6;

type Block = Box<[u8]>;

fn keep(bytes: usize) {
    black_box(Box::leak(vec![1_u8; bytes].into_boxed_slice()));
}

/// A value that allocates when it is dropped.
struct Leaves(usize);

impl Drop for Leaves {
    fn drop(&mut self) {
        keep(self.0);
    }
}

thread_local! {
    static AT_THREADS_END: Leaves = const { Leaves(60_001) };
}

#[cfg(not(target_os = "macos"))]
use libc::__errno_location as errno_place;
#[cfg(target_os = "macos")]
use libc::__error as errno_place;

/// Frees a value, and checks that this does not change the error number.
fn free(value: impl Sized) {
    const OTHER: c_int = 77;
    // SAFETY: the C library has no precondition for this.
    let place = unsafe { errno_place() };
    // SAFETY: `place` is a valid pointer to this thread's error number.
    unsafe { *place = OTHER };
    drop(value);
    // SAFETY: as above.
    let after = unsafe { *place };
    assert_eq!(after, OTHER, "a free changes the error number");
}

fn work(thread: usize, next: &Sender<Block>, own: &Receiver<Block>) {
    for round in 0..ROUNDS {
        let mut blocks: Vec<Block> = (0..30).map(|n| vec![1; 100 + n].into_boxed_slice()).collect();
        let mut grows = Vec::new();
        (0..60_u64).for_each(|n| grows.push(n));
        for block in blocks.drain(..15) {
            next.send(block).expect("every thread keeps its end");
        }
        own.try_iter().for_each(free);
        free(grows);
        free(blocks);
        if round % 10 == 0 {
            keep(50_001 + thread);
        }
        if round % 50 == 0 {
            let short = std::thread::spawn(|| AT_THREADS_END.with(|_| free(Box::new([1_u8; 100]))));
            short.join().expect("no panic");
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                let _leaves = Leaves(70_001);
                std::panic::panic_any(round);
            }));
            assert_eq!(panicked.expect_err("it panics").downcast_ref(), Some(&round));
        }
    }
}

extern "C" fn count_signal(_: c_int) {
    static SIGNALS: AtomicUsize = AtomicUsize::new(0);
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

fn fork(file: &Path) {
    // SAFETY: the child allocates and writes a dump, which the library allows after a fork, and then ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        (0..100).for_each(|_| keep(80_001));
        let status = c_int::from(dmd::dump(file).is_err());
        // SAFETY: the function has no precondition.
        unsafe { libc::_exit(status) };
    }
    let mut status = -1;
    // SAFETY: `status` is valid for a write.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1 {}
    assert_eq!(status, 0);
}

fn main() {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    let [file, childs_file] = &files[..] else { panic!("two files") };
    std::panic::set_hook(Box::new(|info| {
        // Panics that are part of the test have a number as payload.
        if !info.payload().is::<usize>() {
            eprintln!("{info}");
            std::process::abort();
        }
    }));
    // SAFETY: the handler has the type that the kernel calls.
    unsafe { libc::signal(libc::SIGALRM, count_signal as extern "C" fn(c_int) as *const () as usize) };
    let each = libc::timeval { tv_sec: 0, tv_usec: 500 };
    let often = libc::itimerval { it_interval: each, it_value: each };
    // SAFETY: `often` is a valid time, and a null place for the old time is allowed.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const often, std::ptr::null_mut()) };

    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(thread, own)| {
                let next = senders[(thread + 1) % THREADS].clone();
                scope.spawn(move || {
                    work(thread, &next, &own);
                    drop(next);
                    own
                })
            })
            .collect();
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                dmd::dump("/dev/null").ok();
            }
        });
        (0..FORKS).for_each(|_| fork(childs_file.as_ref()));
        // Keep the results until all threads have ended: a thread that still runs may send to a thread that has ended.
        let ends: Vec<_> = workers.into_iter().map(|worker| worker.join().expect("no panic")).collect();
        drop(ends);
        ended.store(true, Ordering::Relaxed);
    });
    let never = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let off = libc::itimerval { it_interval: never, it_value: never };
    // SAFETY: as above.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const off, std::ptr::null_mut()) };
    dmd::dump(file).expect("recording");
}
