//! Measures the cost of a tree of sizes, as a ratio to the cost of the total alone.
//!
//! `cargo run --release -p benches --bin size_tree`; `size_tree_measured` is the same with a declared allocator. The
//! readings of `size_tree_measured` ask the allocator for the size of each block.

#![allow(clippy::print_stdout, reason = "the figures are the output")]

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use memory_reporter::{MallocSizeOf, computed_size_of, malloc_size_of, measure::size_summary, size_tree};

const ROUNDS: usize = 15;

#[derive(MallocSizeOf)]
struct Tree {
    left: Option<Box<Tree>>,
    right: Option<Box<Tree>>,
    key: u64,
}

fn tree(nodes: u64, key: u64) -> Option<Box<Tree>> {
    let left = nodes.checked_sub(1)? / 2;
    let right = nodes - 1 - left;
    Some(Box::new(Tree { left: tree(left, key * 2), right: tree(right, key * 2 + 1), key }))
}

#[derive(MallocSizeOf)]
struct Row {
    name: String,
    tags: Vec<String>,
    score: f64,
    parent: Option<Box<str>>,
}

fn rows(count: usize) -> Vec<Row> {
    let tags = |i: usize| (0..i % 4).map(|tag| format!("tag {tag}")).collect();
    (0..count)
        .map(|i| Row {
            name: format!("row {i}"),
            tags: tags(i),
            score: i as f64,
            parent: (i % 2 == 0).then(|| format!("row {}", i / 2).into()),
        })
        .collect()
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn compare<T: MallocSizeOf>(name: &str, value: &T) {
    let readings: [fn(&T) -> usize; 4] = [
        |value| computed_size_of(value),
        |value| malloc_size_of(value),
        |value| size_summary(value).usable,
        |value| size_tree(value).total().usable,
    ];
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        for (reading, times) in readings.iter().zip(&mut times) {
            let start = Instant::now();
            black_box(reading(black_box(value)));
            times.push(start.elapsed().as_secs_f64());
        }
    }
    let [computed, measured, summary, tree] = times.map(median);
    let ms = 1e3;
    println!(
        "{name:<28} computed {:6.2} ms, malloc_size_of {:6.2} ms, size_summary {:6.2} ms, size_tree {:6.2} ms \
         = {:.2} x computed, {:.2} x malloc_size_of",
        computed * ms,
        measured * ms,
        summary * ms,
        tree * ms,
        tree / computed,
        tree / measured,
    );
    assert_eq!(size_tree(value).total().usable, malloc_size_of(value));
}

pub(crate) fn main() {
    let strings: Vec<String> = (0..1_000_000).map(|i| format!("text {i}")).collect();
    compare("Vec<String> of 1,000,000", &strings);
    let root = tree(1_000_000, 1);
    compare("Box tree of 1,000,000", &root);
    assert!(root.is_some_and(|root| root.key == 1));
    let map: HashMap<u64, Vec<u32>> = (0..300_000).map(|i| (i, vec![1; i as usize % 20])).collect();
    compare("HashMap<u64, Vec<u32>>", &map);
    let rows = rows(200_000);
    compare("Vec<Row> of 200,000", &rows);
    assert!(rows[1].score > 0.0);
}
