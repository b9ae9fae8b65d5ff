//! Measures the time of memory-reporter, of handwritten walks and of other crates, on the same live data.
//!
//! Each round runs every measurer once, in a new order. So the state of the caches before a measurer differs from round
//! to round. The results are medians of the rounds. A measurer that skips work looks fast, so compare its bytes before
//! its time.

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::time::Instant;

use tests::Random;

use crate::data::{self, Graph, Json, Node, Record};
use crate::measurers;
use crate::rivals::{FIRST_ASKING, Measurer};

/// A measurer that takes more nanoseconds than this runs only once.
const LONG: f64 = 3e8;

fn measure<T>(name: &str, blocks: usize, rounds: usize, measurers: &[Measurer<T>], value: &T) {
    let mut times = vec![Vec::new(); measurers.len()];
    let mut bytes = vec![None; measurers.len()];
    let mut random = Random::new(0x5eed);
    let mut order: Vec<usize> = (0..measurers.len()).collect();
    for _ in 0..rounds {
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        for &i in &order {
            if times[i].first().is_some_and(|first| *first > LONG) {
                continue;
            }
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
    let mut floor = medians[0].max(1.0);
    for (i, (measurer, _)) in measurers.iter().enumerate() {
        if *measurer == FIRST_ASKING {
            floor = medians[i].max(1.0);
        }
        let Some(bytes) = bytes[i] else { continue };
        println!("{measurer:<26}{bytes:>14}{:>12.2}{:>10.2}", medians[i] / blocks as f64, medians[i] / floor);
    }
}

pub(crate) fn run(rounds: usize, only: &str) {
    let wanted = |name: &str| name.starts_with(only);
    if wanted("a") {
        let value = data::strings(1_000_000);
        measure("a  Vec<String>", 1_000_001, rounds, &measurers!(Vec<String>), &value);
    }
    if wanted("b") {
        let value = data::table(500_000);
        let measurers = measurers!(HashMap<u64, Vec<u32>>);
        measure("b  HashMap<u64, Vec<u32>>", 500_001, rounds, &measurers, &value);
    }
    if wanted("c") {
        let value = data::tree_map(300_000);
        let measurers = measurers!(BTreeMap<String, Box<Record>>);
        measure("c  BTreeMap<String, Box<Record>>", 640_000, rounds, &measurers, &value);
    }
    if wanted("d") {
        let value = data::box_tree(20);
        measure("d  tree of boxes", (1 << 20) - 2, rounds, &measurers!(Node), &value);
    }
    if wanted("e") {
        let value = data::graph(100_000, 1_000_000);
        measure("e  graph of Arcs", 200_002, rounds, &measurers!(Graph), &value);
    }
    if wanted("f") {
        let value = vec![[1.0, 2.0, 3.0]; 10_000_000];
        measure("f  Vec<[f64; 3]>", 1, rounds, &measurers!(Vec<[f64; 3]>), &value);
    }
    if wanted("g") {
        measure("g  JSON", 954_000, rounds, &measurers!(Json), &data::json(1_000_000));
    }
}
