//! A program whose recording a test replays. Usage: `recorded STORY`. The program prints `live BYTES BLOCKS` and `peak
//! LEAST MOST` from a counting allocator around DMD.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

/// The bytes of blocks whose allocation has returned and whose free has not started. DMD counts at least these bytes
/// at any time, no matter how long the system stops a thread between its calls.
static LEAST: Counter = Counter::new();
/// The bytes of blocks whose allocation has started and whose free has not returned. DMD counts at most these bytes.
static MOST: Counter = Counter::new();
static BLOCKS: AtomicI64 = AtomicI64::new(0);

struct Counter {
    live: AtomicI64,
    peak: AtomicI64,
}

impl Counter {
    const fn new() -> Self {
        Self { live: AtomicI64::new(0), peak: AtomicI64::new(0) }
    }

    fn add(&self, bytes: i64) {
        let live = self.live.fetch_add(bytes, Ordering::SeqCst) + bytes;
        self.peak.fetch_max(live, Ordering::SeqCst);
    }
}

struct Counting(dmd::Dmd<System>);

// SAFETY: every call is forwarded to the wrapped allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size() as i64;
        BLOCKS.fetch_add(1, Ordering::SeqCst);
        MOST.add(size);
        // SAFETY: the caller of `alloc` keeps the same contract.
        let block = unsafe { self.0.alloc(layout) };
        LEAST.add(size);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let size = layout.size() as i64;
        BLOCKS.fetch_sub(1, Ordering::SeqCst);
        LEAST.add(-size);
        // SAFETY: the caller of `dealloc` keeps the same contract.
        unsafe { self.0.dealloc(block, layout) }
        MOST.add(-size);
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (old, new) = (layout.size() as i64, size as i64);
        // During the call, DMD counts the old block, the new block, or neither.
        LEAST.add(-old);
        MOST.add(old.max(new) - old);
        // SAFETY: the caller of `realloc` keeps the same contract.
        let moved = unsafe { self.0.realloc(block, layout, size) };
        LEAST.add(new);
        MOST.add(new - old.max(new));
        moved
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(dmd::Dmd::new(System));

type Blocks = Vec<Vec<u8>>;

/// Blocks of 1 to 300 bytes, and sometimes a large block. They are freed, grow and shrink in random order.
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

/// Eight threads that free the blocks of their neighbors.
fn threads() -> Vec<Blocks> {
    let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..8).map(|_| mpsc::channel::<Blocks>()).unzip();
    receivers.rotate_right(1);
    let ends = senders.into_iter().zip(receivers).zip(1..);
    let threads: Vec<_> = ends
        .map(|((sender, receiver), seed)| {
            let named = thread::Builder::new().name(format!("worker {}", seed - 1));
            let started = named.spawn(move || {
                for round in 0..20 {
                    // The neighbor waits for this value.
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

/// The blocks that [`free_all`] frees.
static TO_FREE: OnceLock<Vec<usize>> = OnceLock::new();

extern "C" fn free_all() {
    for block in TO_FREE.get().into_iter().flatten() {
        // SAFETY: `malloc` allocated the block, and no other code frees it.
        unsafe { libc::free(std::ptr::with_exposed_provenance_mut(*block)) };
    }
}

/// Frees blocks on a stack of one page, which has no room for the engine: no thread can hand over so many events in
/// time.
fn free_without_room() {
    const PAGE: usize = 4096;
    // SAFETY: `malloc` has no precondition.
    TO_FREE.get_or_init(|| (0..200_000).map(|_| unsafe { libc::malloc(100) }.expose_provenance()).collect());
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new pages overwrite no memory. One is for the stack, and one without access is below it.
    let pages = unsafe { libc::mmap(std::ptr::null_mut(), 2 * PAGE, access, kind, -1, 0) }.cast::<u8>();
    // SAFETY: this is the first of the two pages, and no code uses it yet.
    assert_eq!(unsafe { libc::mprotect(pages.cast(), PAGE, libc::PROT_NONE) }, 0);
    let (mut here, mut there) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: `there` is a valid place for a context.
    unsafe { libc::getcontext(there.as_mut_ptr()) };
    // SAFETY: `getcontext` has filled `there`.
    let there: &mut libc::ucontext_t = unsafe { there.assume_init_mut() };
    // SAFETY: the result is the second of the two pages.
    there.uc_stack.ss_sp = unsafe { pages.add(PAGE) }.cast();
    there.uc_stack.ss_size = PAGE;
    there.uc_link = here.as_mut_ptr();
    // SAFETY: the context has a stack, and a context to continue with.
    unsafe { libc::makecontext(there, free_all, 0) };
    // SAFETY: `here` is a valid place for this context, and `there` is a context with a function.
    unsafe { libc::swapcontext(here.as_mut_ptr(), there) };
}

/// Keeps a value alive to the end of the process.
fn keep<T>(value: T) {
    black_box(ManuallyDrop::new(value));
}

fn tell() {
    let of = |count: &AtomicI64| count.load(Ordering::SeqCst);
    println!("live {} {}", of(&MOST.live), of(&BLOCKS));
    println!("peak {} {}", of(&LEAST.peak), of(&MOST.peak));
}

fn main() {
    let story = std::env::args().nth(1).expect("a story");
    // Print this before the counts are read: standard output allocates a buffer.
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
            free_without_room();
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
            // SAFETY: the call ends this process.
            unsafe { libc::kill(std::process::id() as i32, libc::SIGKILL) };
        }
        "replaced" => {
            let kept = known(1000);
            thread::sleep(Duration::from_millis(400));
            let program = std::env::current_exe().expect("the path of this program");
            let error = Command::new(program).arg("churn").exec();
            panic!("{error}: {}", kept.len());
        }
        // Closes descriptors that the program did not open, and opens its own files under their numbers.
        "closed" => {
            let first = known(1000);
            thread::sleep(Duration::from_millis(200));
            for descriptor in 3..2000 {
                // SAFETY: the call closes a descriptor that the program does not use.
                unsafe { libc::close(descriptor) };
            }
            let file = std::env::current_exe().and_then(std::fs::File::open).expect("this program's file");
            for descriptor in 500..520 {
                // SAFETY: `file` keeps the duplicated descriptor open.
                unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&file), descriptor) };
            }
            let second = churn(3, 100_000);
            tell();
            keep((first, second, file));
        }
        "limited" => {
            let limit = libc::rlimit { rlim_cur: 200_000, rlim_max: 200_000 };
            // SAFETY: the call sets a limit of this process.
            unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
            let kept = churn(4, 1_000_000);
            println!("alive");
            keep(kept);
        }
        "terminated" => {
            let kept = churn(5, 20_000);
            tell();
            // SAFETY: the call ends this process.
            unsafe { libc::kill(std::process::id() as i32, libc::SIGTERM) };
            keep(kept);
        }
        other => panic!("no story {other}"),
    }
}
