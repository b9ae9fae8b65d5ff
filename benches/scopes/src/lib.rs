//! The work that each program times: allocations and frees of small blocks.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 2001;
const PASSES: usize = 100;
const LIVE: usize = 64;

/// The nanoseconds of an allocation with its free.
fn pass() -> f64 {
    let mut blocks: [Option<Vec<u8>>; LIVE] = [const { None }; LIVE];
    let start = Instant::now();
    for _ in 0..PASSES {
        for (i, block) in blocks.iter_mut().enumerate() {
            *block = Some(black_box(Vec::with_capacity(16 + i * 8 % 113)));
        }
        let mut i = 0;
        for _ in 0..LIVE {
            // The stride has no common factor with the number of blocks.
            i = (i + 37) % LIVE;
            blocks[i] = None;
        }
    }
    start.elapsed().as_nanos() as f64 / (PASSES * LIVE) as f64
}

/// Prints the fastest and the median round of work that `inside` calls. Other programs disturb the fastest round least.
pub fn bench(name: &str, mut inside: impl FnMut(&mut dyn FnMut())) {
    let mut figures = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        inside(&mut || figures.push(pass()));
    }
    print(name, figures);
}

/// Prints the times of one call.
pub fn bench_call(name: &str, mut call: impl FnMut()) {
    const CALLS: usize = 5000;
    let mut figures = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        figures.push(start.elapsed().as_nanos() as f64 / CALLS as f64);
    }
    print(name, figures);
}

fn print(name: &str, mut figures: Vec<f64>) {
    figures.sort_by(f64::total_cmp);
    println!("{name:>40}: {:6.1} ns, median {:6.1} ns", figures[0], figures[figures.len() / 2]);
}
