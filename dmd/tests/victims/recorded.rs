//! A program whose recording a test replays. Usage: `recorded STORY`. Prints `live BYTES BLOCKS` and `peak BYTES` of a
//! counting allocator around DMD.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

static LIVE: AtomicI64 = AtomicI64::new(0);
static BLOCKS: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

struct Counting(dmd::Dmd<System>);

fn count(bytes: i64, blocks: i64) {
    BLOCKS.fetch_add(blocks, Ordering::SeqCst);
    let live = LIVE.fetch_add(bytes, Ordering::SeqCst) + bytes;
    PEAK.fetch_max(live, Ordering::SeqCst);
}

// SAFETY: every call goes to the wrapped allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64, 1);
        // SAFETY: the caller of `alloc` promises the same.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as i64), -1);
        // SAFETY: the caller of `dealloc` promises the same.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64, 0);
        // SAFETY: the caller of `realloc` promises the same.
        unsafe { self.0.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(dmd::Dmd::new(System));

type Blocks = Vec<Vec<u8>>;

/// Blocks of 1 to 300 bytes, and now and then a large one, that die, grow and shrink in no order.
#[inline(never)]
fn churn(seed: u64, steps: usize) -> Blocks {
    let mut blocks: Blocks = vec![Vec::new(); 500];
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for step in 0..steps {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (at, size) = (random as usize % blocks.len(), 1 + (random >> 32) as usize % 300);
        match random >> 60 {
            0..=2 => blocks[at].resize(size * 3, 1),
            3 => blocks[at].shrink_to_fit(),
            4 if step % 500 == 0 => blocks[at] = vec![1; 5 << 20],
            _ => blocks[at] = black_box(vec![1; size]),
        }
    }
    blocks
}

/// Eight threads, which free what their neighbours made.
fn threads() -> Vec<Blocks> {
    let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..8).map(|_| mpsc::channel::<Blocks>()).unzip();
    receivers.rotate_right(1);
    let ends = senders.into_iter().zip(receivers).zip(1..);
    let threads: Vec<_> = ends
        .map(|((sender, receiver), seed)| {
            let named = thread::Builder::new().name(format!("worker {}", seed - 1));
            let started = named.spawn(move || {
                for round in 0..20 {
                    // The neighbour waits for it.
                    let _ = sender.send(churn(seed * 100 + round, 500));
                    drop(receiver.recv());
                }
                churn(seed, 2000)
            });
            started.expect("a thread")
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
}

#[inline(never)]
fn known(number: usize) -> Blocks {
    (0..number).map(|_| black_box(vec![1; 100])).collect()
}

/// A thread frees blocks after the engine has taken its state back: nobody can hand over so many events in time.
fn end_with_many_frees() {
    extern "C" fn drop_blocks(blocks: *mut libc::c_void) {
        // SAFETY: the pointer below, whose thread ends once.
        drop(unsafe { Box::from_raw(blocks.cast::<Blocks>()) });
    }
    let ending = thread::spawn(|| {
        let blocks = Box::into_raw(Box::new(known(200_000)));
        let mut key = 0;
        // SAFETY: `key` is a place for a key, which is newer than the engine's, so that its destructor runs later.
        unsafe { libc::pthread_key_create(&raw mut key, Some(drop_blocks)) };
        // SAFETY: the key made above.
        unsafe { libc::pthread_setspecific(key, blocks.cast()) };
    });
    ending.join().expect("no panic");
}

/// Leaves a value alive to the end.
fn keep<T>(value: T) {
    black_box(ManuallyDrop::new(value));
}

fn tell() {
    let of = |count: &AtomicI64| count.load(Ordering::SeqCst);
    println!("live {} {}", of(&LIVE), of(&BLOCKS));
    println!("peak {}", of(&PEAK));
}

fn main() {
    let story = std::env::args().nth(1).expect("a story");
    // Before the counts: standard output keeps a buffer.
    println!("story {story}");
    match story.as_str() {
        "churn" => {
            let kept = churn(1, 100_000);
            tell();
            keep(kept);
        }
        "threads" => {
            let kept = threads();
            tell();
            keep(kept);
        }
        "fork" => {
            let kept = (known(1000), churn(2, 5000));
            // SAFETY: the child allocates and ends, and there is one thread.
            let child = unsafe { libc::fork() };
            let more = if child == 0 {
                drop(kept);
                (known(10), threads())
            } else {
                let mut status = 0;
                // SAFETY: `status` is a place for the status of this child.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                let more = (known(20), Vec::new());
                keep(kept);
                more
            };
            tell();
            keep(more);
        }
        "lost" => {
            end_with_many_frees();
            // SAFETY: the child allocates and ends, and there is one thread.
            let child = unsafe { libc::fork() };
            if child != 0 {
                let mut status = 0;
                // SAFETY: `status` is a place for the status of this child.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
            }
            keep(known(10));
        }
        "killed" => {
            let kept = known(1000);
            thread::sleep(Duration::from_millis(400));
            keep((kept, known(1)));
            // SAFETY: ends this process.
            unsafe { libc::kill(std::process::id() as i32, libc::SIGKILL) };
        }
        "replaced" => {
            let kept = known(1000);
            thread::sleep(Duration::from_millis(400));
            let program = std::env::current_exe().expect("the path of this program");
            let error = Command::new(program).arg("churn").exec();
            panic!("{error}: {}", kept.len());
        }
        // The descriptors of others, and then files of its own with their numbers.
        "closed" => {
            let first = known(1000);
            thread::sleep(Duration::from_millis(200));
            for descriptor in 3..2000 {
                // SAFETY: closes what the program has no use for.
                unsafe { libc::close(descriptor) };
            }
            let file = std::env::current_exe().and_then(std::fs::File::open).expect("this program's file");
            for descriptor in 500..520 {
                // SAFETY: duplicates a descriptor that `file` keeps open.
                unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&file), descriptor) };
            }
            let second = churn(3, 100_000);
            tell();
            keep((first, second, file));
        }
        "limited" => {
            let limit = libc::rlimit { rlim_cur: 200_000, rlim_max: 200_000 };
            // SAFETY: a limit of this process.
            unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
            let kept = churn(4, 1_000_000);
            println!("alive");
            keep(kept);
        }
        "terminated" => {
            let kept = churn(5, 20_000);
            tell();
            // SAFETY: ends this process.
            unsafe { libc::kill(std::process::id() as i32, libc::SIGTERM) };
            keep(kept);
        }
        other => panic!("no story {other}"),
    }
}
