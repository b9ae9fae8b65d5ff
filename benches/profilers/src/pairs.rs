//! One allocation and its end, again and again: what a hook adds where it does nothing.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

const PAIRS: u32 = 2_000_000;
const ROUNDS: u32 = 25;

/// Prints the nanoseconds of a pair in the quietest round.
pub(crate) fn print() -> Result<(), Box<dyn Error>> {
    let nanoseconds = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for pair in 0..PAIRS {
                drop(black_box(Box::new([u64::from(pair); 6])));
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(PAIRS)
        })
        .fold(f64::INFINITY, f64::min);
    println!("pair_ns={nanoseconds:.3}");
    Ok(())
}
