//! Measures how long a dump of 1,000,000 live blocks takes while another thread allocates, in milliseconds. In the
//! first case all blocks have one size and one stack. In the second case no two blocks have both the same size and the
//! same stack.
//!
//! `DMD="--mode=live --stacks=full --quiet" cargo run --release -p profilers --bin dumping`

#![allow(clippy::print_stdout, reason = "the figures are the output")]

use std::alloc::System;
use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use dmd::Dmd;

#[global_allocator]
static ALLOCATOR: Dmd<System> = Dmd::new(System);

const BLOCKS: usize = 1_000_000;
/// The number of calls in each stack of the second case. Each call selects one of two functions, so there are
/// `2^CALLS` different stacks.
const CALLS: u32 = 10;
const ROUNDS: usize = 5;

fn call(path: usize, calls: u32, size: usize) -> Vec<u8> {
    let Some(calls) = calls.checked_sub(1) else { return Vec::with_capacity(size) };
    if path >> calls & 1 == 0 { left(path, calls, size) } else { right(path, calls, size) }
}

#[inline(never)]
fn left(path: usize, calls: u32, size: usize) -> Vec<u8> {
    black_box(call(path, calls, black_box(size)))
}

#[inline(never)]
fn right(path: usize, calls: u32, size: usize) -> Vec<u8> {
    black_box(call(path, calls, black_box(size + 1))) // so that the compiler keeps two functions
}

fn measure(what: &str, blocks: impl Fn(usize) -> Vec<u8>) -> Result<(), Box<dyn Error>> {
    let kept: Vec<_> = (0..BLOCKS).map(blocks).collect();
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("dump.json");
    let done = AtomicBool::new(false);
    let mut rounds = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sizes = (16..516).cycle();
            while !done.load(Ordering::Relaxed) {
                drop(black_box(Vec::<u8>::with_capacity(sizes.next().unwrap_or(16))));
            }
        });
        let rounds: Result<Vec<f64>, _> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                dmd::dump(&file).map(|_| start.elapsed().as_secs_f64() * 1e3)
            })
            .collect();
        done.store(true, Ordering::Relaxed);
        rounds
    })?;
    rounds.sort_by(f64::total_cmp);
    let (least, most) = (rounds[0], rounds[ROUNDS - 1]);
    let bytes = std::fs::metadata(&file)?.len();
    println!("{what}: {:.0} ms ({least:.0} to {most:.0}), {bytes} bytes", rounds[ROUNDS / 2]);
    drop(black_box(kept));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if !dmd::is_running() {
        return Err("DMD is off: see the command in the source".into());
    }
    measure("alike", |_| Vec::with_capacity(64))?;
    let stacks = 1 << CALLS;
    measure("all different", |n| call(n % stacks, CALLS, 16 + n / stacks))
}
