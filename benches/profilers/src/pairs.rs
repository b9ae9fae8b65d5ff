//! Repeats one allocation and its deallocation, to measure the cost of an allocation hook that is switched off.

use std::alloc::{GlobalAlloc, Layout, System, alloc, dealloc};
use std::hint::black_box;
use std::time::Instant;

const PAIRS: u32 = 20_000;
const ROUNDS: u32 = 2000;

/// Prints the nanoseconds of an allocation and its deallocation in the fastest round, with the program's allocator and
/// with the system's functions. The difference is the cost of the hook. The rounds of the two allocators are short and
/// alternate, so that both allocators have rounds in which the machine does no other work.
pub(crate) fn print() {
    let layout = Layout::new::<[u64; 6]>();
    let (mut global, mut system) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        global = global.min(round(|| {
            // SAFETY: the layout's size is 48, not 0.
            let block = black_box(unsafe { alloc(layout) });
            // SAFETY: the same allocator has just made the block with this layout, and no other code uses it.
            unsafe { dealloc(block, layout) };
        }));
        system = system.min(round(|| {
            // SAFETY: the layout's size is 48, not 0.
            let block = black_box(unsafe { System.alloc(layout) });
            // SAFETY: the same allocator has just made the block with this layout, and no other code uses it.
            unsafe { System.dealloc(block, layout) };
        }));
    }
    println!("pair_ns={global:.3} system_pair_ns={system:.3}");
}

#[inline(always)]
fn round(mut pair: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..PAIRS {
        pair();
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(PAIRS)
}
