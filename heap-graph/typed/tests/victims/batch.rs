//! A batch program without code for DMD. It fills a table, frees the table, and continues with less memory. Usage:
//! `typed_heap_batch HOW`. HOW is the way in which the program ends: `returns`; `exits` with the table alive; `killed`
//! after the table is freed; or `waits` for its standard input with the table alive, and then frees the table.

#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::collections::HashMap;
use std::hint::black_box;
use std::io::Read as _;

/// At the peak, 20,000 persons exist, each with a name of 40 bytes in a buffer of 80 bytes.
struct Person {
    name: String,
    age: u64,
}

/// At the end, 1,000 leftovers exist.
struct Leftover {
    number: u64,
}

#[inline(never)]
fn people() -> HashMap<u64, Box<Person>> {
    (0..20_000)
        .map(|number| {
            let mut name = String::with_capacity(80);
            name.extend(std::iter::repeat_n('x', 40));
            (number, Box::new(Person { name, age: number % 90 }))
        })
        .collect()
}

#[inline(never)]
#[allow(clippy::vec_box, reason = "each has a block of its own")]
fn leftovers() -> Vec<Box<Leftover>> {
    (0..1000).map(|number| Box::new(Leftover { number })).collect()
}

fn main() {
    let how = std::env::args().nth(1).expect("how to end");
    let people = black_box(people());
    let sum: u64 = people.values().map(|person| person.age + person.name.len() as u64).sum();
    println!("{sum}");
    match &*how {
        "exits" => std::process::exit(3),
        "waits" => {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
        }
        _ => {}
    }
    drop(people);
    let leftovers = black_box(leftovers());
    println!("{}", leftovers.iter().map(|leftover| leftover.number).sum::<u64>());
    if how == "killed" {
        std::process::abort();
    }
    std::process::exit(0);
}
