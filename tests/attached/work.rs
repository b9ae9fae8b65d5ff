//! Programs for `check`: a runtime under load, until standard input ends. Usage: `attached_work tokio|rayon`.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for tests")]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rayon::prelude::*;

static ENDS: AtomicBool = AtomicBool::new(false);
static ROUNDS: AtomicU64 = AtomicU64::new(0);

fn runs() -> bool {
    !ENDS.load(Ordering::Relaxed)
}

/// Allocates blocks of many sizes, and checks their contents.
fn work(seed: u64) -> u64 {
    let texts: BTreeMap<u64, String> =
        (0..50).map(|number| (number * 7 % 50, "x".repeat((number + seed) as usize % 300))).collect();
    let sum: usize = texts.values().map(String::len).sum();
    let expected: usize = (0..50).map(|number: u64| (number + seed) as usize % 300).sum();
    assert_eq!(sum, expected);
    ROUNDS.fetch_add(1, Ordering::Relaxed);
    sum as u64
}

fn tokio_works() {
    const TASKS: u64 = 32;
    const PAUSE: Duration = Duration::from_millis(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let total = Arc::new(AtomicU64::new(0));
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let total = Arc::clone(&total);
                tokio::spawn(async move {
                    while runs() {
                        let before = Instant::now();
                        tokio::time::sleep(PAUSE).await;
                        assert!(before.elapsed() >= PAUSE);
                        total.fetch_add(work(task), Ordering::Relaxed);
                        let blocking = tokio::task::spawn_blocking(move || work(task + 1));
                        total.fetch_add(blocking.await.unwrap(), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

fn rayon_works() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let once: u64 = (0..200).map(work).sum();
    while runs() {
        let sum: u64 = pool.install(|| (0..200).into_par_iter().map(work).sum());
        assert_eq!(sum, once);
        thread::sleep(Duration::from_millis(1));
    }
}

/// Measures how much longer than requested a thread sleeps.
fn measure() -> Vec<Duration> {
    const PAUSE: Duration = Duration::from_millis(1);
    let mut gaps = Vec::new();
    while runs() {
        let before = Instant::now();
        thread::sleep(PAUSE);
        gaps.push(before.elapsed().saturating_sub(PAUSE));
    }
    gaps.sort_unstable();
    gaps
}

fn main() {
    let works = match std::env::args().nth(1).as_deref() {
        Some("tokio") => tokio_works,
        Some("rayon") => rayon_works,
        _ => panic!("usage: attached_work tokio|rayon"),
    };
    let worker = thread::spawn(works);
    let measures = thread::spawn(measure);
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
    ENDS.store(true, Ordering::Relaxed);
    worker.join().unwrap();
    let gaps = measures.join().unwrap();
    let milliseconds = |gap: Option<&Duration>| gap.map_or(0.0, |gap| gap.as_secs_f64() * 1e3);
    println!(
        "errors 0, {} rounds, late p99 {:.1} max {:.1} ms",
        ROUNDS.load(Ordering::Relaxed),
        milliseconds(gaps.get(gaps.len() * 99 / 100)),
        milliseconds(gaps.last()),
    );
}
