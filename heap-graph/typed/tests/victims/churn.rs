//! Eight threads that allocate, move and free. Usage: `DMD=1 ABOUT_MEMORY=listen typed_heap_churn`. The threads pause
//! half of the time, unless `THOROUGH` is set. The program prints a line when the threads run. When its standard
//! input ends, it prints a line with the sum of all threads, and ends.

#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::alloc::System;
use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

#[global_allocator]
static GLOBAL: dmd::Dmd<System> = dmd::Dmd::new(System);

static ENDS: AtomicBool = AtomicBool::new(false);

const THREADS: u64 = 8;

/// The number of turns between two pauses. All eight threads keep two processors busy during their turns. The
/// observing program gets processor time during the pauses.
const TURNS: u64 = 500;
const PAUSE: Duration = Duration::from_millis(20);

struct Item {
    name: String,
    parts: Vec<String>,
}

/// The data of a thread: a few thousand blocks.
#[derive(Default)]
struct Mine {
    items: HashMap<u64, Item>,
    order: BTreeMap<u64, u64>,
}

impl Mine {
    fn turn(&mut self, number: u64) {
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
        if number.is_multiple_of(3) {
            self.items.remove(&key);
            self.order.remove(&key);
            return;
        }
        let item = self.items.entry(key).or_insert_with(|| Item { name: String::new(), parts: Vec::new() });
        item.name.push_str("more ");
        item.parts.push(number.to_string());
        if item.parts.len() > 8 {
            item.parts = vec![number.to_string()];
            item.name = number.to_string();
        }
        self.order.insert(key, number);
    }

    fn blocks(&self) -> usize {
        self.items.values().map(|item| item.parts.len() + item.name.len()).sum::<usize>() + self.order.len()
    }
}

fn work() -> usize {
    let mut mine = Mine::default();
    let pauses = std::env::var_os("THOROUGH").is_none();
    let mut number = 0;
    while !ENDS.load(Ordering::Relaxed) {
        mine.turn(number);
        number += 1;
        if pauses && number.is_multiple_of(TURNS) {
            thread::sleep(PAUSE);
        }
    }
    mine.blocks()
}

fn main() {
    let threads: Vec<_> = (0..THREADS).map(|_| thread::spawn(work)).collect();
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("standard input");
    ENDS.store(true, Ordering::Relaxed);
    let blocks: usize = threads.into_iter().map(|thread| thread.join().expect("no thread fails")).sum();
    println!("{}", if blocks > 0 { "done" } else { "nothing" });
}
