//! Measures the cost of a log of allocations in a program that DMD records: nanoseconds for an allocation and its
//! deallocation.
//!
//! `DMD="--mode=live --stacks=full --quiet" cargo run --release -p profilers --bin watching`

#![allow(clippy::print_stdout, reason = "the figures are the output")]

use std::alloc::System;
use std::hint::black_box;
use std::time::Instant;

use dmd::{Dmd, MemoryObserver, ObserverError};

#[global_allocator]
static ALLOCATOR: Dmd<System> = Dmd::new(System);

const OBJECTS: u64 = 300_000;
const ROUNDS: usize = 9;

#[allow(clippy::vec_box, reason = "the test needs separate blocks")]
#[inline(never)]
fn objects() -> Vec<Box<[u64; 4]>> {
    (0..OBJECTS).map(|number| black_box(Box::new([number; 4]))).collect()
}

/// The time to allocate and free one object, in nanoseconds: the median of the rounds.
fn cost() -> f64 {
    let mut rounds = [(); ROUNDS].map(|()| {
        let start = Instant::now();
        drop(black_box(objects()));
        start.elapsed().as_secs_f64() * 1e9 / OBJECTS as f64
    });
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn main() -> Result<(), ObserverError> {
    cost();
    println!("no observer: {:.0} ns", cost());
    if !dmd::is_running() {
        return Ok(());
    }
    let observer = MemoryObserver::new();
    for share in [0.0, 0.01, 0.1, 1.0] {
        observer.set_allocation_sampling_probability(share)?;
        observer.set_tracking_allocation_sites(true)?;
        println!("a log of {share} of all allocations: {:.0} ns", cost());
        observer.set_tracking_allocation_sites(false)?;
    }
    println!("no observer again: {:.0} ns", cost());
    Ok(())
}
