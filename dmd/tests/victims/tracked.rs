//! A program that records nothing until it gets a request. For each line of its input it frees its blocks and
//! allocates new ones, on eight threads; then it creates the file with the name in the line. After the line `log` it
//! observes its allocations, until the line `no-log`. Usage: `tracked`, with `ABOUT_MEMORY`. It prints `ready` when it
//! has its first blocks.

#![allow(clippy::print_stdout, reason = "tells the test")]

use std::alloc::System;
use std::sync::mpsc;
use std::thread;

#[global_allocator]
static ALLOCATOR: dmd::Dmd<System> = dmd::Dmd::on_request(System);

const THREADS: usize = 8;
/// The number of blocks of each thread; the test uses the same number.
fn blocks_of_a_thread() -> usize {
    if std::env::var_os("THOROUGH").is_some() { 20_000 } else { 5_000 }
}

type Blocks = Vec<Box<[u8]>>;

#[inline(never)]
fn blocks(size: usize, count: usize) -> Blocks {
    (0..count).map(|_| vec![1; size].into_boxed_slice()).collect()
}

/// Allocates blocks of 107 bytes that stay, while another thread frees each block of 200 bytes.
fn grow() -> Vec<Blocks> {
    let count = blocks_of_a_thread();
    let (send, receive) = mpsc::sync_channel::<Blocks>(4);
    let freeing = thread::spawn(move || receive.into_iter().for_each(drop));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let send = send.clone();
            thread::spawn(move || {
                let mut kept = Vec::new();
                for _ in 0..100 {
                    kept.extend(blocks(107, count / 100));
                    send.send(blocks(200, count / 100)).expect("the other thread receives all");
                }
                kept
            })
        })
        .collect();
    drop(send);
    let kept = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    freeing.join().expect("no panic");
    kept
}

fn main() {
    let mut old = blocks(3000, 1000);
    println!("ready");
    let mut young = Vec::new();
    let mut observer = None;
    for line in std::io::stdin().lines() {
        let line = line.expect("readable");
        match line.trim() {
            "log" => {
                let log = dmd::MemoryObserver::new();
                log.set_tracking_allocation_sites(true).expect("DMD records");
                observer = Some(log);
            }
            "no-log" => observer = None,
            _ => {}
        }
        // Half of the older blocks end while DMD may record; the other half stays.
        old.truncate(500);
        drop(young);
        young = grow();
        std::fs::write(line.trim(), "").expect("writable");
    }
    drop((young, observer));
}
