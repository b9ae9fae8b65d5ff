//! What a program with a static allocator does besides allocating: threads, children, other programs and
//! reporters. Each kind of block has its own size. Usage, under `libdmd.so`: `linked_* stories`.

#![allow(clippy::mem_forget, reason = "blocks stay live")]

use std::hint::black_box;
use std::mem::forget;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use memory_reporter::{CollectOptions, collect_reports};

static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());
memory_reporter::define_reporter!("explicit/names", Heap, &NAMES, "Memory used by names.");

type Blocks = Vec<Box<[u8]>>;

#[inline(never)]
fn blocks(number: usize, bytes: usize) -> Blocks {
    (0..number).map(|_| black_box(vec![1_u8; bytes].into_boxed_slice())).collect()
}

pub(crate) fn run(story: &str) {
    if story == "other program" {
        // 7 blocks of 3,003 bytes stay.
        return forget(blocks(7, 3003));
    }
    // 500 blocks of 30,005 bytes are live at the peak only.
    drop(blocks(500, 30_005));
    // Threads allocate 200 blocks of 3,004 bytes. This thread frees 50 of them.
    let threads: Vec<_> = (0..4).map(|_| thread::spawn(|| blocks(50, 3004))).collect();
    let mut made: Vec<Blocks> = threads.into_iter().map(|made| made.join().expect("no panic")).collect();
    made.pop();
    // The reporter marks 10 texts of 3,007 bytes.
    *NAMES.lock().expect("unpoisoned") = (0..10).map(|_| "x".repeat(3007)).collect();
    drop(collect_reports(&CollectOptions::new()));
    // The child of a fork frees 10 of 30 blocks of 3,001 bytes, and keeps 5 blocks of 3,002 bytes.
    let mut inherited = blocks(30, 3001);
    // SAFETY: there is one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        inherited.truncate(20);
        forget((inherited, blocks(5, 3002), made));
        std::process::exit(0);
    }
    let mut status = 0;
    // SAFETY: `status` is a place for the status of this child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    let program = std::env::current_exe().expect("a path");
    let status = Command::new(program).args(["stories", "other program"]).status().expect("it starts");
    assert!(status.success());
    // 100,000 small blocks for samples.
    forget((inherited, made, blocks(100_000, 104)));
}
