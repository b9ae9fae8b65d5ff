//! A program whose memory grows until it reaches a limit. Usage:
//!
//! - `boxed ramp MIB_PER_SECOND PROGRESS [MIB]` allocates blocks of 64 KiB and writes them, until the kernel kills it,
//!   the allocator has no memory, or it has this many MiB; then it sleeps. It stores its bytes in the file PROGRESS.
//! - `boxed seen MIB_PER_SECOND PROGRESS FOLDER` is `ramp`, but grows slowly from 300 MiB on until the folder has a dump.
//! - `boxed huge MIB` allocates one block and writes it.
//! - `boxed counted MIB` allocates blocks, and then prints how often the allocator was called while it waited.
//! - `boxed previous` prints the last dump of an earlier process.
//! - `boxed twin` makes a file that an earlier process with its number could have left a moment ago, prints the last dump
//!   of an earlier process, grows until the box has written its own dump, and prints it again.
//! - `boxed buffers COUNT MIB` takes and frees blocks, and prints the reads of the system for each: `rchar` of its I/O.
//! - `boxed fork MIB_PER_SECOND PROGRESS` is `ramp` in a child.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

/// The number of whole dumps in a folder.
fn dumps(folder: &str) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".json.gz")).count()
}

fn print_previous() {
    match dmd::previous_dump() {
        Some(dump) => {
            let name = dump.path.file_name().expect("a name").to_string_lossy().into_owned();
            println!("{name} {} {} {} {}", dump.used, dump.process, dump.reason, dump.is_partial);
        }
        None => println!("none"),
    }
}

/// Grows until the box has written a dump, among names that an earlier process could have given.
fn twin() {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let name = format!("dmd.{:013}.5.{}.limit.json.gz", since.as_millis(), std::process::id());
    File::create(&name).expect("writable");
    print_previous();
    let mut blocks = Vec::with_capacity(1 << 14);
    while dumps(".") < 2 {
        hold(&mut blocks);
        thread::sleep(Duration::from_millis(1));
    }
    print_previous();
}

/// The bytes that this process has read by system calls.
fn bytes_read() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").expect("readable");
    let number = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    number.expect("a row").parse().expect("a number")
}

fn ramp(rate: u64, progress: &str, most: u64, folder: Option<&str>) -> ! {
    let file = File::create(progress).expect("the test passes a path");
    let mut blocks = Vec::with_capacity(1 << 14);
    let start = Instant::now();
    let mut is_seen = folder.is_none();
    loop {
        let bytes = (blocks.len() * BLOCK) as u64;
        let due = (start.elapsed().as_secs_f64() * (rate << 20) as f64) as u64;
        if bytes >= most << 20 {
            thread::sleep(Duration::from_secs(1));
        } else if bytes < due {
            hold(&mut blocks);
            if !is_seen && bytes >= 300 << 20 {
                is_seen = folder.is_some_and(|folder| dumps(folder) > 0);
                thread::sleep(Duration::from_millis(20));
            }
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
        Some("ramp") => {
            ramp(number(2).expect("a rate"), &words[3], number(4).unwrap_or(u64::MAX >> 20), None)
        }
        Some("seen") => {
            ramp(number(2).expect("a rate"), &words[3], u64::MAX >> 20, words.get(4).map(String::as_str));
        }
        Some("fork") => {
            // SAFETY: the process has one thread of its own.
            if unsafe { libc::fork() } == 0 {
                ramp(number(2).expect("a rate"), &words[3], u64::MAX >> 20, None);
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
        Some("previous") => print_previous(),
        Some("twin") => twin(),
        Some("buffers") => {
            // The thread of the box looks once before.
            thread::sleep(Duration::from_secs(1));
            let (count, size) = (number(2).expect("a count"), number(3).expect("a size"));
            let before = bytes_read();
            for _ in 0..count {
                std::hint::black_box(Vec::<u8>::with_capacity((size << 20) as usize));
            }
            println!("{}", (bytes_read() - before) / count);
        }
        _ => println!("an unknown mode"),
    }
}
