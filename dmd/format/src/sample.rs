//! Estimates from a sample that a Poisson process over bytes draws (`--sample-bytes`).
//!
//! The process chooses random points among the allocated bytes, one per `mean` bytes on average. DMD records a block
//! if at least one point falls into it: a block of n bytes with the probability p = 1 - exp(-n / mean), independently
//! of all other blocks. A recorded block represents 1 / p blocks of its size (Horvitz and Thompson, "A generalization
//! of sampling without replacement from a finite universe", 1952). So sums over any set of blocks are unbiased. n is
//! the requested size; a block of 0 bytes counts as a block of 1 byte.

/// The number of blocks that a recorded block of this many requested bytes represents, at least 1. `mean` is the mean
/// distance of the points in bytes; 0 means that DMD records every block.
pub fn weight(requested: u64, mean: u64) -> f64 {
    if mean == 0 { 1.0 } else { 1.0 / chance(requested.max(1) as f64 / mean as f64) }
}

/// 1 - exp(-x) for a positive x. The C library's function is not used: it is in `libm`, and to load `libm` would cost
/// half a megabyte in every process.
fn chance(x: f64) -> f64 {
    if x > 40.0 {
        return 1.0;
    }
    let halvings = if x > 0.25 { (x / 0.25) as u32 } else { 0 }.checked_ilog2().map_or(0, |log| log + 1);
    let small = x / f64::from(1_u32 << halvings);
    // The series of 1 - exp(-x), nested: x (1 - x/2 (1 - x/3 (...))).
    let mut chance = (2..16).rev().fold(1.0, |inner, n| 1.0 - small / f64::from(n) * inner) * small;
    for _ in 0..halvings {
        chance *= 2.0 - chance;
    }
    chance
}

/// The part that one recorded block of this many requested bytes adds to the estimated variance of the number of
/// blocks: (1 - p) / p². For the variance of the bytes, multiply it by the square of the block's bytes.
pub fn variance(requested: u64, mean: u64) -> f64 {
    let weight = weight(requested, mean);
    weight * (weight - 1.0)
}

/// The maximum standard error of an estimate of this many bytes, in bytes: the square root of `bytes * mean`. Small
/// blocks reach it, since each recorded small block represents `mean` bytes. The error for larger blocks is smaller.
pub fn largest_error(bytes: u64, mean: u64) -> f64 {
    (bytes as f64 * mean as f64).sqrt()
}
