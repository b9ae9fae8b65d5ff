//! Measures the cost of `dyn` values: the same values are measured directly and behind a trait.

use std::hint::black_box;
use std::time::Instant;

use memory_reporter::{
    MallocSizeOf, computed_size_of, malloc_size_of, malloc_size_of_dyn, measure::ErasedMallocSizeOf,
};

trait Shape: ErasedMallocSizeOf {}

malloc_size_of_dyn!(Shape);

#[derive(MallocSizeOf)]
struct Polygon {
    name: String,
    points: Vec<u64>,
}

impl Shape for Polygon {}

const SHAPES: usize = 300_000;

fn polygon(i: usize) -> Polygon {
    Polygon { name: format!("polygon {i}"), points: vec![1; i % 8 + 1] }
}

fn median(rounds: usize, mut measure: impl FnMut() -> usize) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            black_box(measure());
            start.elapsed().as_nanos() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[rounds / 2] / SHAPES as f64
}

pub(crate) fn run() {
    let plain: Vec<Box<Polygon>> = (0..SHAPES).map(|i| Box::new(polygon(i))).collect();
    let erased: Vec<Box<dyn Shape>> = (0..SHAPES).map(|i| Box::new(polygon(i)) as Box<dyn Shape>).collect();
    assert_eq!(computed_size_of(&plain) + SHAPES * size_of::<usize>(), computed_size_of(&erased));
    println!("| ns a value of 3 blocks | `Vec<Box<Polygon>>` | `Vec<Box<dyn Shape>>` |\n|---|---|---|");
    for _ in 0..3 {
        let computed = (median(15, || computed_size_of(&plain)), median(15, || computed_size_of(&erased)));
        let measured = (median(15, || malloc_size_of(&plain)), median(15, || malloc_size_of(&erased)));
        println!("| computed | {:.1} | {:.1} |", computed.0, computed.1);
        println!("| measured | {:.1} | {:.1} |", measured.0, measured.1);
    }
    plain_data();
}

/// 100 MB without a pointer: a walk visits no part of it, directly or behind `dyn`.
fn plain_data() {
    let plain = Box::new(Polygon { name: String::new(), points: vec![0; 12_500_000] });
    let whole = |nanoseconds: f64| nanoseconds * SHAPES as f64;
    let as_is = whole(median(15, || malloc_size_of(&plain)));
    let erased: Box<dyn Shape> = plain;
    let behind = whole(median(15, || malloc_size_of(&erased)));
    println!("\n| ns for 100 MB of plain data | {as_is:.0} | {behind:.0} |");
}
