//! What measuring costs: ours beside hand-written walks and the other crates, on the same live data.
//!
//! `cargo run --release -p benches --bin sizing -- [ROUNDS] [SET]`
//!
//! Each round runs every measurer once, in a new order, so that none always finds the caches as one
//! neighbour left them; the median of the rounds counts. A measurer that skips work looks fast: look at
//! its bytes before its time.

#![allow(clippy::print_stdout, reason = "the figures are the output")]

mod data;
mod floor;
mod rivals;

use std::hint::black_box;
use std::time::Instant;

use benches::Random;
use memory_reporter::{MallocSizeOf, computed_size_of, malloc_size_of};

use crate::floor::{Ask, Computed, Floor, Measured};
use crate::rivals::Rivals;

memory_reporter::global_allocator!(std::alloc::System);

type Measurer<T> = (&'static str, fn(&T) -> usize);

fn measure<T: MallocSizeOf + Floor + Rivals>(name: &str, blocks: usize, rounds: usize, value: &T) {
    fn walk<T: Floor, A: Ask>(value: &T) -> usize {
        value.walk::<A>()
    }
    let mut measurers: Vec<Measurer<T>> =
        vec![("floor computed", walk::<T, Computed>), ("ours computed", computed_size_of::<T>)];
    measurers.extend(T::COMPUTING);
    let asking = measurers.len();
    measurers.extend([
        ("floor measured", walk::<T, Measured> as fn(&T) -> usize),
        ("ours measured", malloc_size_of::<T>),
    ]);
    measurers.extend(T::MEASURING);

    let mut times = vec![Vec::new(); measurers.len()];
    let mut bytes = vec![0; measurers.len()];
    let mut random = Random::new(0x5eed);
    let mut order: Vec<usize> = (0..measurers.len()).collect();
    for _ in 0..rounds {
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        for &i in &order {
            let start = Instant::now();
            bytes[i] = black_box((measurers[i].1)(black_box(value)));
            times[i].push(start.elapsed().as_nanos() as f64);
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let medians: Vec<f64> = times.iter_mut().map(median).collect();
    println!("\n{name}: {blocks} blocks\n{:<26}{:>14}{:>12}{:>10}", "", "bytes", "ns a block", "to floor");
    for (i, (measurer, _)) in measurers.iter().enumerate() {
        let floor = medians[if i < asking { 0 } else { asking }].max(1.0);
        println!(
            "{measurer:<26}{:>14}{:>12.2}{:>10.2}",
            bytes[i],
            medians[i] / blocks as f64,
            medians[i] / floor
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(15);
    let only = arguments.next().unwrap_or_default();
    let wanted = |name: &str| name.starts_with(&only);
    if wanted("a") {
        measure("a  Vec<String>", 1_000_001, rounds, &data::strings(1_000_000));
    }
    if wanted("b") {
        measure("b  HashMap<u64, Vec<u32>>", 500_001, rounds, &data::table(500_000));
    }
    if wanted("c") {
        measure("c  BTreeMap<String, Box<Record>>", 640_000, rounds, &data::tree_map(300_000));
    }
    if wanted("d") {
        measure("d  tree of boxes", (1 << 20) - 2, rounds, &data::box_tree(20));
    }
    if wanted("e") {
        measure("e  graph of Arcs", 200_002, rounds, &data::graph(100_000, 1_000_000));
    }
    if wanted("f") {
        measure("f  Vec<[f64; 3]>", 1, rounds, &vec![[1.0, 2.0, 3.0]; 10_000_000]);
    }
    if wanted("g") {
        measure("g  JSON", 954_000, rounds, &data::json(1_000_000));
    }
}
