//! A program whose memory grows until it reaches a limit. Usage:
//!
//! - `boxed ramp MIB_PER_SECOND PROGRESS [MIB]` allocates blocks of 64 KiB and writes them, until the kernel kills it,
//!   the allocator has no memory, or it has this many MiB; then it sleeps. It stores its bytes in the file PROGRESS.
//! - `boxed huge MIB` allocates one block and writes it.
//! - `boxed counted MIB` allocates blocks, and then prints how often the allocator was called while it waited.
//! - `boxed previous` prints the last dump of an earlier process.
//! - `boxed fork MIB_PER_SECOND PROGRESS` is `ramp` in a child.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

static CALLS: AtomicU64 = AtomicU64::new(0);

/// The allocator below DMD. It counts its calls.
struct Counting;

// SAFETY: each call goes to `System`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: dmd::Dmd<Counting> = dmd::Dmd::new(Counting);

const BLOCK: usize = 64 << 10;

/// The function that holds nearly all memory.
#[inline(never)]
fn hold(blocks: &mut Vec<Box<[u8]>>) {
    blocks.push(vec![1_u8; BLOCK].into_boxed_slice());
}

fn ramp(rate: u64, progress: &str, most: u64) -> ! {
    let file = File::create(progress).expect("the test passes a path");
    let mut blocks = Vec::with_capacity(1 << 14);
    let start = Instant::now();
    loop {
        let bytes = (blocks.len() * BLOCK) as u64;
        let due = (start.elapsed().as_secs_f64() * (rate << 20) as f64) as u64;
        if bytes >= most << 20 {
            thread::sleep(Duration::from_secs(1));
        } else if bytes < due {
            hold(&mut blocks);
            if blocks.len().is_multiple_of(16) {
                file.write_at(&bytes.to_le_bytes(), 0).expect("writable");
            }
        } else {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let mode = words.get(1).map(String::as_str);
    match mode {
        Some("ramp") => ramp(number(2).expect("a rate"), &words[3], number(4).unwrap_or(u64::MAX >> 20)),
        Some("fork") => {
            // SAFETY: the process has one thread of its own.
            if unsafe { libc::fork() } == 0 {
                ramp(number(2).expect("a rate"), &words[3], u64::MAX >> 20);
            }
            // SAFETY: a null pointer means that the status is not wanted.
            unsafe { libc::wait(std::ptr::null_mut()) };
        }
        Some("huge") => {
            let block = vec![1_u8; (number(2).expect("a size") << 20) as usize];
            println!("{}", std::hint::black_box(&block)[0]);
        }
        Some("counted") => {
            let mut blocks = Vec::with_capacity(1 << 14);
            for _ in 0..number(2).expect("a size") * 16 {
                hold(&mut blocks);
            }
            let before = CALLS.load(Ordering::Relaxed);
            thread::sleep(Duration::from_millis(1500));
            println!("{}", CALLS.load(Ordering::Relaxed) - before);
        }
        Some("previous") => match dmd::previous_dump() {
            Some(dump) => {
                let name = dump.path.file_name().expect("a name").to_string_lossy().into_owned();
                println!("{name} {} {} {} {}", dump.used, dump.process, dump.reason, dump.is_partial);
            }
            None => println!("none"),
        },
        _ => println!("an unknown mode"),
    }
}
